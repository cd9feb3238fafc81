"""A search for wrong rows: random histories of tables on a real server, and what `replicate` makes of them.

`subjects*.py` say what may happen to a table, `generating.py` makes histories of it, `playing.py` runs fifty of them at
once under one `replicate` and compares the copies with the server, and `shrinking.py` makes a failing one short.
`mutations.py` has defects which the search must find; it would be a toy otherwise.
"""
