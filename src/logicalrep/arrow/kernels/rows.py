"""The compiled loop that fills the feed's rows from their messages, tables and transactions.

Arrays are given by their addresses, as in all compiled kernels: see logicalrep_runtime.columnar.memory.
"""

from __future__ import annotations

from typing import Any

from logicalrep_runtime.columnar.memory import compiled, read1, read4, read8, write4, write8

_INSERT, _UPDATE = map(ord, "IU")

_TAGS, _LSNS, _TABLES, _TRANSACTIONS, _ORDINALS = range(5)
"""The entries on a chunk's messages."""

_OIDS, _WIDTHS, _NAME_SIZES = range(3)
"""The entries on tables, by their number."""

_FINAL_LSNS, _COMMIT_TIMESTAMPS, _XIDS = range(3)
"""The entries on transactions, by their number."""

_OPS, _TABLE_NUMBERS, _RELATION_IDS, _LSN, _COMMIT_LSN, _COMMIT_TIMESTAMP, _XID, _ORDINAL = range(8)
"""The entries on rows: the first two have 4 bytes, the others 8."""


@compiled
def fill_rows(rows: int, count: int, of_messages: int, of_tables: int, of_transactions: int, of_rows: int) -> Any:
    """Fill the columns of the rows of a chunk's messages.

    `op` is 0 for insert, 1 for update, 2 for delete. Returns the number of values that the tables of all rows have, and
    the bytes of their columns' names.
    """
    tags, lsns, tables = read8(of_messages, _TAGS), read8(of_messages, _LSNS), read8(of_messages, _TABLES)
    transactions, ordinals = read8(of_messages, _TRANSACTIONS), read8(of_messages, _ORDINALS)
    oids, widths = read8(of_tables, _OIDS), read8(of_tables, _WIDTHS)
    name_sizes = read8(of_tables, _NAME_SIZES)
    final_lsns, commit_timestamps = read8(of_transactions, _FINAL_LSNS), read8(of_transactions, _COMMIT_TIMESTAMPS)
    xids = read8(of_transactions, _XIDS)
    ops, table_numbers = read8(of_rows, _OPS), read8(of_rows, _TABLE_NUMBERS)
    relation_ids, row_lsns = read8(of_rows, _RELATION_IDS), read8(of_rows, _LSN)
    commit_lsns, moments = read8(of_rows, _COMMIT_LSN), read8(of_rows, _COMMIT_TIMESTAMP)
    row_xids, row_ordinals = read8(of_rows, _XID), read8(of_rows, _ORDINAL)
    values = names = 0
    for index in range(count):
        row = read8(rows, index)
        tag, table, transaction = read1(tags, row), read4(tables, row), read8(transactions, row)
        write4(ops, index, 0 if tag == _INSERT else 1 if tag == _UPDATE else 2)
        write4(table_numbers, index, table)
        write8(relation_ids, index, read8(oids, table))
        write8(row_lsns, index, read8(lsns, row))
        write8(commit_lsns, index, read8(final_lsns, transaction))
        write8(moments, index, read8(commit_timestamps, transaction))
        write8(row_xids, index, read8(xids, transaction))
        write8(row_ordinals, index, read8(ordinals, row))
        values += read8(widths, table)
        names += read8(name_sizes, table)
    return values, names
