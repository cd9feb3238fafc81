"""The compiled loops over a chunk's messages that find each one's transaction and table.

Arrays are given by their addresses, as in all compiled kernels: see logicalrep_runtime.columnar.memory.
"""

from __future__ import annotations

from logicalrep.arrow.table_numbers import FREE
from logicalrep_runtime.columnar.memory import compiled, read1, read4, read8, write4, write8

_BEGIN, _COMMIT, _TRUNCATE, _MESSAGE = map(ord, "BCTM")
_INSERT, _UPDATE, _DELETE = map(ord, "IUD")


@compiled
def follow(
    tags: int, count: int, is_open: bool, changes: int, truncated: int, transaction_of: int, ordinals: int
) -> tuple[int, bool, int]:
    """Note each message's transaction number, and the number of changes before it in the transaction.

    `is_open` says whether the first message lies within a transaction, number 0, after `changes` changes. `truncated`
    has the number of tables of each Truncate, in order.

    Begins and Commits must alternate, and all messages but logical ones must lie between them. Returns the first
    message that does not (-1 if all do), whether a transaction is open at the end, and its number of changes.
    """
    number = 0
    truncates = 0
    for row in range(count):
        tag = read1(tags, row)
        if tag == _BEGIN:
            if is_open:
                return row, is_open, changes
            is_open = True
            number += 1
            changes = 0
        elif not is_open and tag != _MESSAGE:
            return row, is_open, changes
        write8(transaction_of, row, number)
        write8(ordinals, row, changes)
        if tag == _COMMIT:
            is_open = False
        elif tag in (_INSERT, _UPDATE, _DELETE, _MESSAGE):
            changes += 1
        elif tag == _TRUNCATE:
            changes += read8(truncated, truncates)
            truncates += 1
    return -1, is_open, changes


@compiled
def number_tables(tags: int, oids: int, first: int, last: int, places: int, mask: int, tables: int) -> int:
    """Note the table number of each row change from `first` to before `last`.

    `oids` has each message's table OID, `places` the places of TableNumbers. Returns the first change whose table has
    no number, -1 if all have one.
    """
    for row in range(first, last):
        if read1(tags, row) in (_INSERT, _UPDATE, _DELETE):
            oid = read4(oids, row)
            place = oid & mask
            while read8(places, 2 * place) != oid:
                if read8(places, 2 * place) == FREE:
                    return row
                place = (place + 1) & mask
            write4(tables, row, read8(places, 2 * place + 1))
    return -1
