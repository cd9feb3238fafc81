"""The formats of tables, each with all that is its own."""
