"""Delta tables: logs, removed files, and commits of other programs."""
