"""Readers of stored tables: whether each returns PostgreSQL's rows, and skips no file that has rows of a filter."""
