"""Which tables are replicated, and the loading of the rows that they have."""
