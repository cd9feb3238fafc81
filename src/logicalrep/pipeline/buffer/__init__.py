"""The changes that arrive while a table is loaded, in memory and in files."""
