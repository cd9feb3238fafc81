"""Rows that are kept when they are gone, and companion tables: all versions of a table's rows, and its changes."""
