"""Key indexes on the machine's disk: a batch finds the rows that it changes without reading the table."""
