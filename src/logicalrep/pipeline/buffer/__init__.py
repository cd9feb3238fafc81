"""The changes that arrive during a table's load, in memory and in files."""
