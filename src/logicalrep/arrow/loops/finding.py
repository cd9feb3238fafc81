"""The rows of each table in a batch, and the positions of their values."""

from __future__ import annotations

import numpy as np

from logicalrep.arrow.loops.choosing import native_if_installed
from logicalrep.transactions.tags import KEY, NULL
from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints

RowCells = tuple[Int64s, Int64s]
"""The numbers of rows, and the index of each row's first value."""


@native_if_installed
def group_rows(rows: Int64s, oids: Ints, grouped: Int64s) -> list[tuple[int, int]]:
    """Group messages by table, otherwise in order.

    `rows` has the messages' indices in the batch, `oids` the OID of each message there. `grouped` gets the indices.
    Returns each table's OID and number of messages, in the order of the tables' first messages.
    """
    tables, first, table_of, counts = np.unique(oids[rows], return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    grouped[: len(rows)] = rows[np.argsort(np.argsort(order)[table_of], kind="stable")]
    return list(zip(tables[order].tolist(), counts[order].tolist(), strict=True))


@native_if_installed
def find_rows(
    rows: Int64s,
    offsets: Int64s,
    validity: Bytes,
    kinds: Bytes,
    in_key: Bytes,
    key_kinds: Bytes,
    present: RowCells,
    whole: RowCells,
) -> tuple[int, int, int, bool]:
    """Find the messages that have a row, and the first value of each row.

    `rows` has the messages' indices in the batch; `offsets` and `validity` say where the row of each message begins,
    and whether it has one; `kinds` has the kind of each value. `in_key` has 0 for a column outside of the key;
    `key_kinds` is empty or has K for each message with a row that is a key. `whole` gets the rows that are no key;
    it is `present` if none can be.

    Returns the number of rows in each; the message with another number of values than there are columns, -1 if none;
    and whether a row that is a key has a value outside of the key.
    """
    having = np.flatnonzero(validity[rows >> 3] >> (rows & 7) & 1)
    cells = offsets[rows[having]]
    wrong = having[offsets[rows[having] + 1] - cells != len(in_key)]
    if len(wrong):
        count = np.searchsorted(having, wrong[0])
        having, cells = having[:count], cells[:count]
    is_key = key_kinds[rows[having]] == KEY if len(key_kinds) else np.zeros(len(having), bool)
    has_more = (kinds[cells[is_key, None] + np.flatnonzero(in_key == 0)] != NULL).any()
    for target, source in zip((*present, *whole), (having, cells, having[~is_key], cells[~is_key]), strict=True):
        target[: len(source)] = source
    whole_count = len(having) - np.count_nonzero(is_key)
    return len(having), int(whole_count), int(wrong[0]) if len(wrong) else -1, bool(has_more)
