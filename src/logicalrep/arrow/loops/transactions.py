"""The transaction and the table of each message, and the feed's rows from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.loops.choosing import native_if_installed
from logicalrep.arrow.table_numbers import FREE
from logicalrep.transactions.tags import (
    BEGIN,
    COMMIT,
    DELETE,
    INSERT,
    MESSAGE,
    STREAM_ABORT,
    TRUNCATE,
    UPDATE,
)
from logicalrep_runtime.columnar.located import Bytes, Int64s


@native_if_installed
def follow(
    tags: Bytes, is_open: bool, changes: int, truncated: Int64s, transaction_of: Int64s, ordinals: Int64s
) -> tuple[int, bool, int]:
    """Write each message's transaction number, and the number of changes before it in the transaction.

    `is_open` says whether the first message lies within a transaction, number 0, after `changes` changes.
    `truncated` has the number of tables of each Truncate, in order.

    Begins and Commits must alternate. All messages lie between them, except logical messages, which may be outside
    too, and Stream Aborts, which must be. Returns the first message elsewhere (-1 if none is), whether a transaction
    is open at the end, and its number of changes.
    """
    number = 0
    tables = iter(truncated.tolist())
    for row, tag in enumerate(tags.tolist()):
        if tag == BEGIN:
            if is_open:
                return row, is_open, changes
            is_open = True
            number += 1
            changes = 0
        elif tag != MESSAGE and is_open == (tag == STREAM_ABORT):
            return row, is_open, changes
        transaction_of[row] = number
        ordinals[row] = changes
        if tag == COMMIT:
            is_open = False
        elif tag in (INSERT, UPDATE, DELETE, MESSAGE):
            changes += 1
        elif tag == TRUNCATE:
            changes += next(tables)
    return -1, is_open, changes


@native_if_installed
def number_tables(
    tags: Bytes, oids: NDArray[np.uint32], first: int, last: int, buckets: Int64s, tables: NDArray[np.int32]
) -> int:
    """Write the table number of each row change from `first` to before `last`.

    `oids` has each message's table OID, `buckets` is from TableNumbers. Returns the first change whose table has no
    number, -1 if all have one.
    """
    mask = len(buckets) // 2 - 1
    for row in range(first, last):
        if tags[row] in (INSERT, UPDATE, DELETE):
            oid = int(oids[row])
            bucket = oid & mask
            while buckets[2 * bucket] not in (oid, FREE):
                bucket = (bucket + 1) & mask
            if buckets[2 * bucket] == FREE:
                return row
            tables[row] = buckets[2 * bucket + 1]
    return -1


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


@native_if_installed
def fill_rows(
    rows: Int64s, messages: Messages, tables: TableArrays, transactions: Transactions, columns: FeedColumns
) -> tuple[int, int]:
    """Fill the columns from the messages with these indices.

    Returns the total number of the rows' table columns, and the bytes of their names.
    """
    tags, table, transaction = messages.tags[rows], messages.tables[rows], messages.transactions[rows]
    columns.ops[:] = np.where(tags == INSERT, 0, np.where(tags == UPDATE, 1, 2))
    columns.tables[:] = table
    columns.relation_id[:] = tables.oids[table]
    columns.lsn[:] = messages.lsns[rows]
    columns.commit_lsn[:] = transactions.final_lsns[transaction]
    columns.commit_timestamp[:] = transactions.commit_timestamps[transaction]
    columns.xid[:] = transactions.xids[transaction]
    columns.ordinal[:] = messages.ordinals[rows]
    return int(tables.widths[table].sum()), int(tables.name_sizes[table].sum())
