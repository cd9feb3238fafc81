"""The compiled loop that fills the feed's rows from their messages, tables and transactions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints
from logicalrep_runtime.columnar.memory import compiled, read, write

_INSERT, _UPDATE = map(ord, "IU")


class Messages(NamedTuple):
    tags: Bytes
    lsns: Int64s
    tables: NDArray[np.int32]
    transactions: Int64s
    ordinals: Int64s


class TableArrays(NamedTuple):
    oids: Int64s
    widths: Int64s
    name_sizes: Int64s


class Transactions(NamedTuple):
    final_lsns: Int64s
    commit_timestamps: Int64s
    xids: Int64s


class FeedColumns(NamedTuple):
    ops: NDArray[np.int32]
    """0 for insert, 1 for update, 2 for delete."""
    tables: NDArray[np.int32]
    relation_id: Int64s
    lsn: Int64s
    commit_lsn: Int64s
    commit_timestamp: Int64s
    xid: Int64s
    ordinal: Int64s


@compiled
def fill_rows(
    rows: Ints, messages: Messages, tables: TableArrays, transactions: Transactions, columns: FeedColumns
) -> tuple[int, int]:
    """Fill the columns from the messages with these indices.

    Returns the total number of the rows' table columns, and the bytes of their names.
    """
    values = names = 0
    for index in range(len(rows)):
        row = read(rows, index)
        tag, table = read(messages.tags, row), read(messages.tables, row)
        transaction = read(messages.transactions, row)
        write(columns.ops, index, 0 if tag == _INSERT else 1 if tag == _UPDATE else 2)
        write(columns.tables, index, table)
        write(columns.relation_id, index, read(tables.oids, table))
        write(columns.lsn, index, read(messages.lsns, row))
        write(columns.commit_lsn, index, read(transactions.final_lsns, transaction))
        write(columns.commit_timestamp, index, read(transactions.commit_timestamps, transaction))
        write(columns.xid, index, read(transactions.xids, transaction))
        write(columns.ordinal, index, read(messages.ordinals, row))
        values += read(tables.widths, table)
        names += read(tables.name_sizes, table)
    return values, names
