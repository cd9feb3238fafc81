"""The compiled loops over a chunk's messages that find each message's transaction and table."""

from __future__ import annotations

from logicalrep.arrow.table_numbers import FREE
from logicalrep.transactions.tags import BEGIN, COMMIT, DELETE, INSERT, MESSAGE, STREAM_ABORT, TRUNCATE, UPDATE
from logicalrep_runtime.columnar.located import Bytes, Ints
from logicalrep_runtime.columnar.memory import compiled, read, write


@compiled
def follow(
    tags: Bytes, is_open: bool, changes: int, truncated: Ints, transaction_of: Ints, ordinals: Ints
) -> tuple[int, bool, int]:
    """Write each message's transaction number, and the number of changes before it in the transaction.

    `is_open` says whether the first message lies within a transaction, number 0, after `changes` changes.
    `truncated` has the number of tables of each Truncate, in order.

    Begins and Commits must alternate. All messages lie between them, except logical messages, which may be outside
    too, and Stream Aborts, which must be. Returns the first message elsewhere (-1 if none is), whether a transaction
    is open at the end, and its number of changes.
    """
    number = 0
    truncates = 0
    for row in range(len(tags)):
        tag = read(tags, row)
        if tag == BEGIN:
            if is_open:
                return row, is_open, changes
            is_open = True
            number += 1
            changes = 0
        elif tag != MESSAGE and is_open == (tag == STREAM_ABORT):
            return row, is_open, changes
        write(transaction_of, row, number)
        write(ordinals, row, changes)
        if tag == COMMIT:
            is_open = False
        elif tag in (INSERT, UPDATE, DELETE, MESSAGE):
            changes += 1
        elif tag == TRUNCATE:
            changes += read(truncated, truncates)
            truncates += 1
    return -1, is_open, changes


@compiled
def number_tables(tags: Bytes, oids: Ints, first: int, last: int, buckets: Ints, tables: Ints) -> int:
    """Write the table number of each row change from `first` to before `last`.

    `oids` has each message's table OID, `buckets` is from TableNumbers. Returns the first change whose table has no
    number, -1 if all have one.
    """
    mask = (len(buckets) >> 1) - 1
    for row in range(first, last):
        if read(tags, row) in (INSERT, UPDATE, DELETE):
            oid = read(oids, row)
            bucket = oid & mask
            while read(buckets, 2 * bucket) != oid:
                if read(buckets, 2 * bucket) == FREE:
                    return row
                bucket = (bucket + 1) & mask
            write(tables, row, read(buckets, 2 * bucket + 1))
    return -1
