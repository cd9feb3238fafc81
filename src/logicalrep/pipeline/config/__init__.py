"""The settings of tables that have some of their own, read from a file."""
