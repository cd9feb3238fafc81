"""`logicalrep replicate`: a database's tables kept as Delta tables."""
