"""`logicalrep replicate`: the tables of a database, copied and followed, as tables of a lake."""
