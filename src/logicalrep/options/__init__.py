"""The kinds of options: readers of an option's text, which refuse what is no value of theirs."""
