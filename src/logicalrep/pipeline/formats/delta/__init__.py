"""Delta tables: their destination, names, data files and commits."""
