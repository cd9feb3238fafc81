"""Rows that are kept when they are gone, and the tables beside a table: all versions of its rows, and its changes."""
