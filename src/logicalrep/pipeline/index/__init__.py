"""Indexes of keys on the machine's disk, by which a batch finds the rows that it changes without reading the table."""
