"""Rows of the change feed as record batches: in columns, and one by one for rare events."""
