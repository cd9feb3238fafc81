"""Delta tables: their log, their removed files, the commits of other programs, and their upkeep."""
