"""A table's description: its columns, names and forms at the destination, and its own settings."""
