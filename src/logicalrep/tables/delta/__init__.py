"""Delta tables: their place, names, data files and commits."""
