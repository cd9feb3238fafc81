"""Other engines at work on replicated tables at random moments: what each of them does, and the search that plays it."""
