"""One table's changes, reduced to what each row ends as, and applied to its files."""
