"""Random histories of tables: schema changes and changes of rows, each history in a schema of its own.

`subjects*.py` say what may happen to a table, `generating.py` makes histories of it by a seed, and `statements.py` runs
many histories interleaved on one server.
"""
