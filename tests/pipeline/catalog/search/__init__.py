"""A search for wrong rows: random histories of tables on a real server, and what `replicate` makes of them.

`subjects*.py` say what may happen to a table, `generating.py` makes histories of it, `playing.py` runs fifty of them at
once under one `replicate`, and `shrinking.py` makes a failing one short. `stored.py` reads the versions of a Delta
table, and `comparing.py` says what is wrong with them:

- The last version has the rows that a SELECT has, those of a history that are current too, and masked values as hashes.
- Each version has the rows of a transaction all or none, the rows that the history says, and those that come of the
  version before by the changes of `~changes`, of which none is there twice.
- No version has a value in clear that is masked or left out.

`mutations.py` has defects which the search must find; it would be a toy otherwise.
"""
