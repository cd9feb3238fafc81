"""The compiled kernel of protocol version 1: one checked pass over a batch of messages.

Each function reads one message and returns TAKEN, REFUSED, or FULL where there is no room for a row's values. Nothing
of a message is written before its last byte is accounted for, and no count or length is used before it is held
against the bytes that are left.

Generated from spec/ by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from typing import Any

from logicalrep_runtime.columnar.located import FULL, OUTSIDE, REFUSED, REFUSED_BIT, TAKEN, UNKNOWN, UTF8
from logicalrep_runtime.columnar.memory import (
    compiled,
    copy_to,
    find_zero,
    inlined,
    int16,
    int32,
    int64,
    read1,
    read8,
    uint8,
    uint32,
    uint64,
    write1,
    write4,
    write8,
)
from logicalrep_runtime.columnar.rows import (
    CELLS_ENTRIES,
    COLUMN_ENTRIES,
    COUNT,
    ROOM,
    SEEN,
    SIZE,
    begin_cells,
    put1,
    put4,
    put8,
    put_cells,
    put_span,
)
from logicalrep_runtime.columnar.utf8 import is_utf8
from logicalrep_runtime.scalars import UNIX_EPOCH

STREAMING_FACT = 1
TWO_PHASE_FACT = 2
PARALLEL_FACT = 4

# Each column's first entry in the table of addresses.
FINAL_LSN = 0 * COLUMN_ENTRIES
COMMIT_TIMESTAMP = 1 * COLUMN_ENTRIES
XID = 2 * COLUMN_ENTRIES
FLAGS = 3 * COLUMN_ENTRIES
MESSAGE_LSN = 4 * COLUMN_ENTRIES
PREFIX = 5 * COLUMN_ENTRIES
CONTENT = 6 * COLUMN_ENTRIES
COMMIT_LSN = 7 * COLUMN_ENTRIES
END_LSN = 8 * COLUMN_ENTRIES
ORIGIN_LSN = 9 * COLUMN_ENTRIES
NAME = 10 * COLUMN_ENTRIES
RELATION_ID = 11 * COLUMN_ENTRIES
NAMESPACE = 12 * COLUMN_ENTRIES
REPLICA_IDENTITY = 13 * COLUMN_ENTRIES
COLUMNS = 14 * COLUMN_ENTRIES
TYPE_ID = 15 * COLUMN_ENTRIES
NEW = 16 * COLUMN_ENTRIES
OLD_KIND = 17 * COLUMN_ENTRIES
OLD = 18 * COLUMN_ENTRIES
OPTIONS = 19 * COLUMN_ENTRIES
RELATION_IDS = 20 * COLUMN_ENTRIES
SUBXID = 21 * COLUMN_ENTRIES
PREPARE_LSN = 22 * COLUMN_ENTRIES
PREPARE_TIMESTAMP = 23 * COLUMN_ENTRIES
GID = 24 * COLUMN_ENTRIES
PREPARE_END_LSN = 25 * COLUMN_ENTRIES
ROLLBACK_END_LSN = 26 * COLUMN_ENTRIES
ROLLBACK_TIMESTAMP = 27 * COLUMN_ENTRIES

NEW_CELLS = 28 * COLUMN_ENTRIES + 0 * CELLS_ENTRIES
OLD_CELLS = 28 * COLUMN_ENTRIES + 1 * CELLS_ENTRIES


@inlined
def _tuple_data(data: Any, offset: int, end: int, out: int, entry: int, cells: int) -> Any:
    """The values of a row, one for each column of its Relation, in that order."""
    cell = read8(out, entry + COUNT)
    kinds, starts, lengths = read8(out, cells + 1), read8(out, cells + 2), read8(out, cells + 3)
    values, filled = read8(out, cells + 5), read8(out, entry + SIZE)
    size = 0
    if end - offset < 2:
        return REFUSED, cell, size
    count = int16(data, offset)
    offset += 2
    if count < 0 or count > end - offset:
        return REFUSED, cell, size
    if count > read8(out, cells + 4) - cell:
        return FULL, cell, size
    if values != 0 and end - offset > read8(out, cells + 6) - filled:
        return FULL, cell, size
    for _ in range(count):
        if offset >= end:
            return REFUSED, cell, size
        kind = uint8(data, offset)
        length = 0
        if kind == 0x74 or kind == 0x62:
            if end - offset < 5:
                return REFUSED, cell, size
            # Read as unsigned, a negative length lies beyond the message like any that is too large.
            length = uint32(data, offset + 1)
            offset += 5
            if length > end - offset:
                return REFUSED, cell, size
        elif kind == 0x6E or kind == 0x75:
            offset += 1
        else:
            return REFUSED, cell, size
        write1(kinds, cell, kind)
        if values != 0:
            write4(starts, cell, filled + size)
            copy_to(values, filled + size, data, offset, length)
        else:
            write8(starts, cell, offset)
            write4(lengths, cell, length)
        offset += length
        size += length
        cell += 1
    return offset, cell, size


@inlined
def _skip_column(data: Any, offset: int, end: int, count: int, facts: int) -> int:
    """A column of a Relation."""
    if count < 0:
        return REFUSED
    for _ in range(count):
        if end - offset < 1:
            return REFUSED
        offset += 1
        name = offset
        offset = find_zero(data, offset, end)
        if offset < 0 or (facts & UTF8 and not is_utf8(data, name, offset)):
            return REFUSED
        offset += 1
        if end - offset < 8:
            return REFUSED
        offset += 8
    return offset


@compiled
def columns_items(data: Any, spans: int, rows: int, total: int, block: int, sizes: int) -> None:
    """The items of lists that were walked: for each field all integers, or the spans of all texts and their size."""
    item = 0
    for index in range(rows):
        offset = read8(spans, 3 * index + 1)
        for _ in range(read8(spans, 3 * index + 2)):
            write1(block + 32 * total, item, uint8(data, offset))
            offset += 1
            stop = find_zero(data, offset, len(data))
            write8(block + 0 * total, 3 * item, item)
            write8(block + 0 * total, 3 * item + 1, offset)
            write8(block + 0 * total, 3 * item + 2, stop - offset)
            write8(sizes, 0, read8(sizes, 0) + stop - offset)
            offset = stop + 1
            write4(block + 24 * total, item, uint32(data, offset))
            write4(block + 28 * total, item, int32(data, offset + 4))
            offset += 8
            item += 1


@inlined
def _begin(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Opens a transaction; its changes follow, then Commit."""
    if end - offset < 20:
        return REFUSED
    final_lsn = uint64(data, offset)
    commit_timestamp = int64(data, offset + 8)
    xid = uint32(data, offset + 16)
    offset += 20
    if final_lsn == 0:
        return REFUSED
    if offset != end:
        return REFUSED
    put8(out, FINAL_LSN, row, final_lsn)
    put8(out, COMMIT_TIMESTAMP, row, commit_timestamp + UNIX_EPOCH)
    put4(out, XID, row, xid)
    return TAKEN


@inlined
def _message(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Something that pg_logical_emit_message wrote into the log; sent when the option messages is on."""
    if end - offset < 9:
        return REFUSED
    flags = uint8(data, offset)
    message_lsn = uint64(data, offset + 1)
    offset += 9
    prefix = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, prefix, offset)):
        return REFUSED
    prefix_size = offset - prefix
    offset += 1
    if end - offset < 4:
        return REFUSED
    content_length = int32(data, offset)
    offset += 4
    content = offset
    if content_length < 0 or content_length > end - offset:
        return REFUSED
    content_size = content_length
    offset += content_length
    if offset != end:
        return REFUSED
    if read8(out, PREFIX + COUNT) >= read8(out, PREFIX + ROOM):
        return FULL
    if read8(out, CONTENT + COUNT) >= read8(out, CONTENT + ROOM):
        return FULL
    put1(out, FLAGS, row, flags)
    put8(out, MESSAGE_LSN, row, message_lsn)
    put_span(out, PREFIX, row, prefix, prefix_size)
    put_span(out, CONTENT, row, content, content_size)
    return TAKEN


@inlined
def _commit(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Closes the transaction that Begin opened."""
    if end - offset < 25:
        return REFUSED
    flags = uint8(data, offset)
    commit_lsn = uint64(data, offset + 1)
    end_lsn = uint64(data, offset + 9)
    commit_timestamp = int64(data, offset + 17)
    offset += 25
    if flags != 0:
        return REFUSED
    if offset != end:
        return REFUSED
    put8(out, COMMIT_LSN, row, commit_lsn)
    put8(out, END_LSN, row, end_lsn)
    put8(out, COMMIT_TIMESTAMP, row, commit_timestamp + UNIX_EPOCH)
    return TAKEN


@inlined
def _origin(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Says which replication origin the transaction was replayed from."""
    if end - offset < 8:
        return REFUSED
    origin_lsn = uint64(data, offset)
    offset += 8
    name = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, name, offset)):
        return REFUSED
    name_size = offset - name
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, NAME + COUNT) >= read8(out, NAME + ROOM):
        return FULL
    put8(out, ORIGIN_LSN, row, origin_lsn)
    put_span(out, NAME, row, name, name_size)
    return TAKEN


@inlined
def _relation(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Describes a table; sent before the first change that needs it and again when it may have changed."""
    if end - offset < 4:
        return REFUSED
    relation_id = uint32(data, offset)
    offset += 4
    namespace = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, namespace, offset)):
        return REFUSED
    namespace_size = offset - namespace
    offset += 1
    name = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, name, offset)):
        return REFUSED
    name_size = offset - name
    offset += 1
    if end - offset < 3:
        return REFUSED
    replica_identity = uint8(data, offset)
    column_count = int16(data, offset + 1)
    offset += 3
    if replica_identity != 0x64 and replica_identity != 0x6E and replica_identity != 0x66 and replica_identity != 0x69:
        return REFUSED
    columns = offset
    offset = _skip_column(data, offset, end, column_count, facts)
    if offset < 0:
        return REFUSED
    if offset != end:
        return REFUSED
    if read8(out, NAMESPACE + COUNT) >= read8(out, NAMESPACE + ROOM):
        return FULL
    if read8(out, NAME + COUNT) >= read8(out, NAME + ROOM):
        return FULL
    if read8(out, COLUMNS + COUNT) >= read8(out, COLUMNS + ROOM):
        return FULL
    put4(out, RELATION_ID, row, relation_id)
    put_span(out, NAMESPACE, row, namespace, namespace_size)
    put_span(out, NAME, row, name, name_size)
    put1(out, REPLICA_IDENTITY, row, replica_identity)
    put_span(out, COLUMNS, row, columns, column_count)
    return TAKEN


@inlined
def _type(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Names a data type that is not built in, ahead of the Relation that uses it."""
    if end - offset < 4:
        return REFUSED
    type_id = uint32(data, offset)
    offset += 4
    namespace = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, namespace, offset)):
        return REFUSED
    namespace_size = offset - namespace
    offset += 1
    name = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, name, offset)):
        return REFUSED
    name_size = offset - name
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, NAMESPACE + COUNT) >= read8(out, NAMESPACE + ROOM):
        return FULL
    if read8(out, NAME + COUNT) >= read8(out, NAME + ROOM):
        return FULL
    put4(out, TYPE_ID, row, type_id)
    put_span(out, NAMESPACE, row, namespace, namespace_size)
    put_span(out, NAME, row, name, name_size)
    return TAKEN


@inlined
def _insert(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """A new row."""
    if end - offset < 5:
        return REFUSED
    relation_id = uint32(data, offset)
    new_kind = uint8(data, offset + 4)
    offset += 5
    if new_kind != 0x4E:
        return REFUSED
    offset, new, new_size = _tuple_data(data, offset, end, out, NEW, NEW_CELLS)
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    put4(out, RELATION_ID, row, relation_id)
    put_cells(out, NEW, row, new, new_size)
    return TAKEN


@inlined
def _update(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """A changed row."""
    if end - offset < 4:
        return REFUSED
    relation_id = uint32(data, offset)
    offset += 4
    old_kind = 0
    if offset < end:
        old_kind = uint8(data, offset)
    if old_kind == 0x4B or old_kind == 0x4F:
        offset += 1
        offset, old, old_size = _tuple_data(data, offset, end, out, OLD, OLD_CELLS)
        if offset < 0:
            return offset
    else:
        old_kind = 0
    if end - offset < 1:
        return REFUSED
    new_kind = uint8(data, offset)
    offset += 1
    if new_kind != 0x4E:
        return REFUSED
    offset, new, new_size = _tuple_data(data, offset, end, out, NEW, NEW_CELLS)
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    put4(out, RELATION_ID, row, relation_id)
    if old_kind != 0:
        put1(out, OLD_KIND, row, old_kind)
        put_cells(out, OLD, row, old, old_size)
    put_cells(out, NEW, row, new, new_size)
    return TAKEN


@inlined
def _delete(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """A deleted row."""
    if end - offset < 5:
        return REFUSED
    relation_id = uint32(data, offset)
    old_kind = uint8(data, offset + 4)
    offset += 5
    if old_kind != 0x4B and old_kind != 0x4F:
        return REFUSED
    offset, old, old_size = _tuple_data(data, offset, end, out, OLD, OLD_CELLS)
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    put4(out, RELATION_ID, row, relation_id)
    put1(out, OLD_KIND, row, old_kind)
    put_cells(out, OLD, row, old, old_size)
    return TAKEN


@inlined
def _truncate(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Tables that were emptied by one TRUNCATE."""
    if end - offset < 5:
        return REFUSED
    relation_count = int32(data, offset)
    options = uint8(data, offset + 4)
    offset += 5
    relation_ids = offset
    if relation_count < 0 or relation_count * 4 > end - offset:
        return REFUSED
    offset += relation_count * 4
    if offset != end:
        return REFUSED
    if read8(out, RELATION_IDS + COUNT) >= read8(out, RELATION_IDS + ROOM):
        return FULL
    put1(out, OPTIONS, row, options)
    put_span(out, RELATION_IDS, row, relation_ids, relation_count)
    return TAKEN


@inlined
def _stream_abort(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Rolls back a streamed transaction, or one of its subtransactions."""
    if end - offset < 8:
        return REFUSED
    xid = uint32(data, offset)
    subxid = uint32(data, offset + 4)
    offset += 8
    if offset != end:
        return REFUSED
    put4(out, XID, row, xid)
    put4(out, SUBXID, row, subxid)
    return TAKEN


@inlined
def _begin_prepare(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Opens a transaction that was prepared; its changes follow, then Prepare."""
    if not facts & TWO_PHASE_FACT:
        return REFUSED
    if end - offset < 28:
        return REFUSED
    prepare_lsn = uint64(data, offset)
    end_lsn = uint64(data, offset + 8)
    prepare_timestamp = int64(data, offset + 16)
    xid = uint32(data, offset + 24)
    offset += 28
    if prepare_lsn == 0 or end_lsn == 0:
        return REFUSED
    gid = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid, offset)):
        return REFUSED
    gid_size = offset - gid
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID + COUNT) >= read8(out, GID + ROOM):
        return FULL
    put8(out, PREPARE_LSN, row, prepare_lsn)
    put8(out, END_LSN, row, end_lsn)
    put8(out, PREPARE_TIMESTAMP, row, prepare_timestamp + UNIX_EPOCH)
    put4(out, XID, row, xid)
    put_span(out, GID, row, gid, gid_size)
    return TAKEN


@inlined
def _prepare(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Closes the transaction that Begin Prepare opened; it is decided later."""
    if not facts & TWO_PHASE_FACT:
        return REFUSED
    if end - offset < 29:
        return REFUSED
    flags = uint8(data, offset)
    prepare_lsn = uint64(data, offset + 1)
    end_lsn = uint64(data, offset + 9)
    prepare_timestamp = int64(data, offset + 17)
    xid = uint32(data, offset + 25)
    offset += 29
    if flags != 0 or prepare_lsn == 0 or end_lsn == 0:
        return REFUSED
    gid = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid, offset)):
        return REFUSED
    gid_size = offset - gid
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID + COUNT) >= read8(out, GID + ROOM):
        return FULL
    put8(out, PREPARE_LSN, row, prepare_lsn)
    put8(out, END_LSN, row, end_lsn)
    put8(out, PREPARE_TIMESTAMP, row, prepare_timestamp + UNIX_EPOCH)
    put4(out, XID, row, xid)
    put_span(out, GID, row, gid, gid_size)
    return TAKEN


@inlined
def _commit_prepared(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Commits a transaction that was prepared before."""
    if not facts & TWO_PHASE_FACT:
        return REFUSED
    if end - offset < 29:
        return REFUSED
    flags = uint8(data, offset)
    commit_lsn = uint64(data, offset + 1)
    end_lsn = uint64(data, offset + 9)
    commit_timestamp = int64(data, offset + 17)
    xid = uint32(data, offset + 25)
    offset += 29
    if flags != 0 or commit_lsn == 0 or end_lsn == 0:
        return REFUSED
    gid = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid, offset)):
        return REFUSED
    gid_size = offset - gid
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID + COUNT) >= read8(out, GID + ROOM):
        return FULL
    put8(out, COMMIT_LSN, row, commit_lsn)
    put8(out, END_LSN, row, end_lsn)
    put8(out, COMMIT_TIMESTAMP, row, commit_timestamp + UNIX_EPOCH)
    put4(out, XID, row, xid)
    put_span(out, GID, row, gid, gid_size)
    return TAKEN


@inlined
def _rollback_prepared(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Rolls back a transaction that was prepared before."""
    if not facts & TWO_PHASE_FACT:
        return REFUSED
    if end - offset < 37:
        return REFUSED
    flags = uint8(data, offset)
    prepare_end_lsn = uint64(data, offset + 1)
    rollback_end_lsn = uint64(data, offset + 9)
    prepare_timestamp = int64(data, offset + 17)
    rollback_timestamp = int64(data, offset + 25)
    xid = uint32(data, offset + 33)
    offset += 37
    if flags != 0 or prepare_end_lsn == 0 or rollback_end_lsn == 0:
        return REFUSED
    gid = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid, offset)):
        return REFUSED
    gid_size = offset - gid
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID + COUNT) >= read8(out, GID + ROOM):
        return FULL
    put8(out, PREPARE_END_LSN, row, prepare_end_lsn)
    put8(out, ROLLBACK_END_LSN, row, rollback_end_lsn)
    put8(out, PREPARE_TIMESTAMP, row, prepare_timestamp + UNIX_EPOCH)
    put8(out, ROLLBACK_TIMESTAMP, row, rollback_timestamp + UNIX_EPOCH)
    put4(out, XID, row, xid)
    put_span(out, GID, row, gid, gid_size)
    return TAKEN


@compiled
def walk(
    data: Any, offsets: int, count: int, tags: int, status: int, known: int, row: int, facts: int, stops: bool, out: int
) -> tuple[int, int, int]:
    """Walk messages from a row on, in the session's facts as bits; a row whose status is not 0 is refused already.

    Returns the first row that was not read, the facts there, and why: TAKEN at the end; REFUSED if `stops` and that
    row is no message; FULL if there is no room for its values, and the walk may go on from there with more; UNKNOWN if
    its tag is not among the `known` ones; OUTSIDE if its offsets are wrong.
    """
    end = read8(offsets, row)
    if end < 0:
        return row, facts, OUTSIDE
    while row < count:
        begin_cells(out, NEW, NEW_CELLS, row)
        begin_cells(out, OLD, OLD_CELLS, row)
        offset = end
        end = read8(offsets, row + 1)
        if end < offset or end > len(data):
            return row, facts, OUTSIDE
        result = REFUSED
        tag = 0
        after = facts
        if offset < end:
            tag = uint8(data, offset)
            if read1(known, tag) == 0:
                return row, facts, UNKNOWN
            write1(known, tag, SEEN)
            offset += 1
        if tag != 0 and read1(status, row) == 0:
            if tag == 0x49:
                result = _insert(data, offset, end, row, facts, out)
            elif tag == 0x55:
                result = _update(data, offset, end, row, facts, out)
            elif tag == 0x44:
                result = _delete(data, offset, end, row, facts, out)
            elif tag == 0x42:
                result = _begin(data, offset, end, row, facts, out)
            elif tag == 0x4D:
                result = _message(data, offset, end, row, facts, out)
            elif tag == 0x43:
                result = _commit(data, offset, end, row, facts, out)
            elif tag == 0x4F:
                result = _origin(data, offset, end, row, facts, out)
            elif tag == 0x52:
                result = _relation(data, offset, end, row, facts, out)
            elif tag == 0x59:
                result = _type(data, offset, end, row, facts, out)
            elif tag == 0x54:
                result = _truncate(data, offset, end, row, facts, out)
            elif tag == 0x41:
                result = _stream_abort(data, offset, end, row, facts, out)
            elif tag == 0x62:
                result = _begin_prepare(data, offset, end, row, facts, out)
            elif tag == 0x50:
                result = _prepare(data, offset, end, row, facts, out)
            elif tag == 0x4B:
                result = _commit_prepared(data, offset, end, row, facts, out)
            elif tag == 0x72:
                result = _rollback_prepared(data, offset, end, row, facts, out)
        if result == TAKEN:
            write1(tags, row, tag)
            facts = after
        elif result == FULL or stops:
            return row, facts, result
        else:
            write1(status, row, REFUSED_BIT | (facts & 0x7F))
        row += 1
    begin_cells(out, NEW, NEW_CELLS, row)
    begin_cells(out, OLD, OLD_CELLS, row)
    return row, facts, TAKEN
