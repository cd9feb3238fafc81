"""Committed changes made one by one, in plain Python, to which the columnar makers are compared."""
