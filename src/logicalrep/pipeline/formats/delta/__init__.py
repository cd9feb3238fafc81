"""Delta tables: their log, their removed files, and the commits of other programs."""
