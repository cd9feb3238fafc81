"""What stays of rows that are gone, and the tables beside a table: all versions of its rows, and its changes."""
