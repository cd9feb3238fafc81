"""The compiled loops that find the rows of each table, and the offsets of their values."""

from __future__ import annotations

from typing import NamedTuple

from logicalrep.transactions.tags import KEY, NULL
from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints
from logicalrep_runtime.columnar.memory import compiled, has_bit, read, write

GROUPS = 1 << 12
"""The buckets of the hash table in `group_rows`; at most half of them are used."""


@compiled
def group_rows(
    rows: Ints, oids: Ints, codes: Ints, buckets: Ints, table_oids: Ints, counts: Ints, starts: Ints, grouped: Ints
) -> int:
    """Group messages by table, otherwise in order.

    `rows` has the messages' indices in the batch, `oids` the OID of each message there. `codes` gets the number of
    each message's table, counted from 0; `buckets` is room for GROUPS of them. `table_oids` gets the tables' OIDs,
    `counts` the number of each table's messages, and `grouped` the indices; `starts` is room for each table's first
    index there. Returns the number of tables; -1 if there are too many.
    """
    for bucket in range(GROUPS):
        write(buckets, bucket, 0)
    tables = 0
    for index in range(len(rows)):
        oid = read(oids, read(rows, index))
        bucket = (oid * 0x9E3779B1 >> 8) & (GROUPS - 1)
        while True:
            code = read(buckets, bucket)
            if code == 0:
                if tables == GROUPS // 2:
                    return -1
                write(table_oids, tables, oid)
                write(counts, tables, 0)
                tables += 1
                code = tables
                write(buckets, bucket, code)
                break
            if read(table_oids, code - 1) == oid:
                break
            bucket = (bucket + 1) & (GROUPS - 1)
        write(codes, index, code - 1)
        write(counts, code - 1, read(counts, code - 1) + 1)
    start = 0
    for table in range(tables):
        write(starts, table, start)
        start += read(counts, table)
    for index in range(len(rows)):
        table = read(codes, index)
        target = read(starts, table)
        write(grouped, target, read(rows, index))
        write(starts, table, target + 1)
    return tables


class RowCells(NamedTuple):
    rows: Int64s
    cells: Int64s


@compiled
def find_rows(
    rows: Ints,
    offsets: Ints,
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
    columns = len(in_key)
    count = 0
    whole_count = 0
    has_more = False
    for index in range(len(rows)):
        row = read(rows, index)
        if not has_bit(validity, row):
            continue
        cell = read(offsets, row)
        if read(offsets, row + 1) - cell != columns:
            return count, whole_count, index, has_more
        write(present.rows, count, index)
        write(present.cells, count, cell)
        count += 1
        if len(key_kinds) == 0 or read(key_kinds, row) != KEY:
            write(whole.rows, whole_count, index)
            write(whole.cells, whole_count, cell)
            whole_count += 1
        elif not has_more:
            for column in range(columns):
                has_more |= read(in_key, column) == 0 and read(kinds, cell + column) != NULL
    return count, whole_count, -1, has_more
