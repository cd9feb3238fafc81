"""Rows of a table in its own columns and types: each relation of a batch, or as a typed table."""
