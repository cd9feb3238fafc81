"""A search for wrong rows: random histories of tables on a real server, and what `replicate` makes of them.

`conformance/histories/` makes histories of what may happen to tables, `playing.py` runs fifty of them at once under one
`replicate`, and `shrinking.py` makes a failing one short. `stored.py` reads the versions of a Delta table, and
`comparing.py` says what is wrong with them:

- The last version has the rows of a SELECT, with masked values as hashes; so have the current rows of `~history`.
- Each version has all rows of a transaction or none, and the rows that `~history` has for its time.
- The changes of `~changes` turn each version into the next one; no change occurs twice.
- No version has a value in clear that is masked or left out.

`mutations.py` has defects which the search must find; it would be a toy otherwise.
"""
