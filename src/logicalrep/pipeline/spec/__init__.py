"""A table's specification: its columns, names and forms at the destination, and its own settings."""
