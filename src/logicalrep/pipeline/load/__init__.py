"""The choice of the tables that are replicated, and the loading of the rows that they have."""
