"""From the messages of a replication slot to committed changes of rows.

What reads them: `captures` for files, `walsender` and `peek` for a server. What is made of them: `assembler`, committed
transactions; `change_feed`, rows of those; `wide`, Arrow tables; `values`, what the types are in Python and Arrow.
`spark` is all of that as a DataFrame, `tables` what batches of it make of a table, `cli` the command line.
"""
