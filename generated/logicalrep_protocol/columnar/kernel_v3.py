"""The compiled kernel of protocol version 3: one checked pass over a batch of messages.

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
FINAL_LSN_COLUMN = 0 * COLUMN_ENTRIES
COMMIT_TIMESTAMP_COLUMN = 1 * COLUMN_ENTRIES
XID_COLUMN = 2 * COLUMN_ENTRIES
FLAGS_COLUMN = 3 * COLUMN_ENTRIES
MESSAGE_LSN_COLUMN = 4 * COLUMN_ENTRIES
PREFIX_COLUMN = 5 * COLUMN_ENTRIES
CONTENT_COLUMN = 6 * COLUMN_ENTRIES
COMMIT_LSN_COLUMN = 7 * COLUMN_ENTRIES
END_LSN_COLUMN = 8 * COLUMN_ENTRIES
ORIGIN_LSN_COLUMN = 9 * COLUMN_ENTRIES
NAME_COLUMN = 10 * COLUMN_ENTRIES
RELATION_ID_COLUMN = 11 * COLUMN_ENTRIES
NAMESPACE_COLUMN = 12 * COLUMN_ENTRIES
REPLICA_IDENTITY_COLUMN = 13 * COLUMN_ENTRIES
COLUMNS_COLUMN = 14 * COLUMN_ENTRIES
TYPE_ID_COLUMN = 15 * COLUMN_ENTRIES
NEW_COLUMN = 16 * COLUMN_ENTRIES
OLD_KIND_COLUMN = 17 * COLUMN_ENTRIES
OLD_COLUMN = 18 * COLUMN_ENTRIES
OPTIONS_COLUMN = 19 * COLUMN_ENTRIES
RELATION_IDS_COLUMN = 20 * COLUMN_ENTRIES
FIRST_SEGMENT_COLUMN = 21 * COLUMN_ENTRIES
SUBXID_COLUMN = 22 * COLUMN_ENTRIES
PREPARE_LSN_COLUMN = 23 * COLUMN_ENTRIES
PREPARE_TIMESTAMP_COLUMN = 24 * COLUMN_ENTRIES
GID_COLUMN = 25 * COLUMN_ENTRIES
PREPARE_END_LSN_COLUMN = 26 * COLUMN_ENTRIES
ROLLBACK_END_LSN_COLUMN = 27 * COLUMN_ENTRIES
ROLLBACK_TIMESTAMP_COLUMN = 28 * COLUMN_ENTRIES

NEW_CELLS = 29 * COLUMN_ENTRIES + 0 * CELLS_ENTRIES
OLD_CELLS = 29 * COLUMN_ENTRIES + 1 * CELLS_ENTRIES


@inlined
def _cell_(data: Any, offset: int, end: int, count: int, out: int, entry: int, cells: int) -> Any:
    """The value of one column."""
    cell = read8(out, entry + COUNT)
    kinds, starts, lengths = read8(out, cells + 1), read8(out, cells + 2), read8(out, cells + 3)
    values, filled = read8(out, cells + 5), read8(out, entry + SIZE)
    size = 0
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
def _skip_column_(data: Any, offset: int, end: int, count: int, facts: int) -> int:
    """A column of a Relation."""
    if count < 0:
        return REFUSED
    for _ in range(count):
        if end - offset < 1:
            return REFUSED
        offset += 1
        name_ = offset
        offset = find_zero(data, offset, end)
        if offset < 0 or (facts & UTF8 and not is_utf8(data, name_, offset)):
            return REFUSED
        offset += 1
        if end - offset < 8:
            return REFUSED
        offset += 8
    return offset


@compiled
def column__items(data: Any, spans: int, rows: int, total: int, block: int, sizes: int) -> None:
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
    final_lsn_ = uint64(data, offset)
    commit_timestamp_ = int64(data, offset + 8)
    xid_ = uint32(data, offset + 16)
    offset += 20
    if not final_lsn_:
        return REFUSED
    if offset != end:
        return REFUSED
    put8(out, FINAL_LSN_COLUMN, row, final_lsn_)
    put8(out, COMMIT_TIMESTAMP_COLUMN, row, commit_timestamp_ + UNIX_EPOCH)
    put4(out, XID_COLUMN, row, xid_)
    return TAKEN


@inlined
def _message(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Something that pg_logical_emit_message wrote into the log; sent when the option messages is on."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 9:
        return REFUSED
    flags_ = uint8(data, offset)
    message_lsn_ = uint64(data, offset + 1)
    offset += 9
    prefix_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, prefix_, offset)):
        return REFUSED
    prefix__size = offset - prefix_
    offset += 1
    if end - offset < 4:
        return REFUSED
    content_length_ = int32(data, offset)
    offset += 4
    content_ = offset
    if content_length_ < 0 or content_length_ > end - offset:
        return REFUSED
    content__size = content_length_
    offset += content_length_
    if offset != end:
        return REFUSED
    if read8(out, PREFIX_COLUMN + COUNT) >= read8(out, PREFIX_COLUMN + ROOM):
        return FULL
    if read8(out, CONTENT_COLUMN + COUNT) >= read8(out, CONTENT_COLUMN + ROOM):
        return FULL
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put1(out, FLAGS_COLUMN, row, flags_)
    put8(out, MESSAGE_LSN_COLUMN, row, message_lsn_)
    put_span(out, PREFIX_COLUMN, row, prefix_, prefix__size)
    put_span(out, CONTENT_COLUMN, row, content_, content__size)
    return TAKEN


@inlined
def _commit(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Closes the transaction that Begin opened."""
    if end - offset < 25:
        return REFUSED
    flags_ = uint8(data, offset)
    commit_lsn_ = uint64(data, offset + 1)
    end_lsn_ = uint64(data, offset + 9)
    commit_timestamp_ = int64(data, offset + 17)
    offset += 25
    if flags_ != 0:
        return REFUSED
    if offset != end:
        return REFUSED
    put8(out, COMMIT_LSN_COLUMN, row, commit_lsn_)
    put8(out, END_LSN_COLUMN, row, end_lsn_)
    put8(out, COMMIT_TIMESTAMP_COLUMN, row, commit_timestamp_ + UNIX_EPOCH)
    return TAKEN


@inlined
def _origin(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Says which replication origin the transaction was replayed from."""
    if end - offset < 8:
        return REFUSED
    origin_lsn_ = uint64(data, offset)
    offset += 8
    name_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, name_, offset)):
        return REFUSED
    name__size = offset - name_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, NAME_COLUMN + COUNT) >= read8(out, NAME_COLUMN + ROOM):
        return FULL
    put8(out, ORIGIN_LSN_COLUMN, row, origin_lsn_)
    put_span(out, NAME_COLUMN, row, name_, name__size)
    return TAKEN


@inlined
def _relation(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Describes a table; sent before the first change that needs it and again when it may have changed."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 4:
        return REFUSED
    relation_id_ = uint32(data, offset)
    offset += 4
    namespace_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, namespace_, offset)):
        return REFUSED
    namespace__size = offset - namespace_
    offset += 1
    name_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, name_, offset)):
        return REFUSED
    name__size = offset - name_
    offset += 1
    if end - offset < 3:
        return REFUSED
    replica_identity_ = uint8(data, offset)
    column_count_ = int16(data, offset + 1)
    offset += 3
    if (
        replica_identity_ != 0x64
        and replica_identity_ != 0x6E
        and replica_identity_ != 0x66
        and replica_identity_ != 0x69
    ):
        return REFUSED
    columns_ = offset
    offset = _skip_column_(data, offset, end, column_count_, facts)
    if offset < 0:
        return REFUSED
    if offset != end:
        return REFUSED
    if read8(out, NAMESPACE_COLUMN + COUNT) >= read8(out, NAMESPACE_COLUMN + ROOM):
        return FULL
    if read8(out, NAME_COLUMN + COUNT) >= read8(out, NAME_COLUMN + ROOM):
        return FULL
    if read8(out, COLUMNS_COLUMN + COUNT) >= read8(out, COLUMNS_COLUMN + ROOM):
        return FULL
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put4(out, RELATION_ID_COLUMN, row, relation_id_)
    put_span(out, NAMESPACE_COLUMN, row, namespace_, namespace__size)
    put_span(out, NAME_COLUMN, row, name_, name__size)
    put1(out, REPLICA_IDENTITY_COLUMN, row, replica_identity_)
    put_span(out, COLUMNS_COLUMN, row, columns_, column_count_)
    return TAKEN


@inlined
def _type(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Names a data type that is not built in, ahead of the Relation that uses it."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 4:
        return REFUSED
    type_id_ = uint32(data, offset)
    offset += 4
    namespace_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, namespace_, offset)):
        return REFUSED
    namespace__size = offset - namespace_
    offset += 1
    name_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, name_, offset)):
        return REFUSED
    name__size = offset - name_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, NAMESPACE_COLUMN + COUNT) >= read8(out, NAMESPACE_COLUMN + ROOM):
        return FULL
    if read8(out, NAME_COLUMN + COUNT) >= read8(out, NAME_COLUMN + ROOM):
        return FULL
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put4(out, TYPE_ID_COLUMN, row, type_id_)
    put_span(out, NAMESPACE_COLUMN, row, namespace_, namespace__size)
    put_span(out, NAME_COLUMN, row, name_, name__size)
    return TAKEN


@inlined
def _insert(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """A new row."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 5:
        return REFUSED
    relation_id_ = uint32(data, offset)
    new_kind_ = uint8(data, offset + 4)
    offset += 5
    if new_kind_ != 0x4E:
        return REFUSED
    if end - offset < 2:
        return REFUSED
    new__column_count_ = int16(data, offset)
    offset += 2
    offset, new__cells_, new__cells__size = _cell_(data, offset, end, new__column_count_, out, NEW_COLUMN, NEW_CELLS)
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put4(out, RELATION_ID_COLUMN, row, relation_id_)
    put_cells(out, NEW_COLUMN, row, new__cells_, new__cells__size)
    return TAKEN


@inlined
def _update(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """A changed row."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 4:
        return REFUSED
    relation_id_ = uint32(data, offset)
    offset += 4
    old_kind_ = 0
    if offset < end:
        old_kind_ = uint8(data, offset)
    if old_kind_ == 0x4B or old_kind_ == 0x4F:
        offset += 1
        if end - offset < 2:
            return REFUSED
        old__column_count_ = int16(data, offset)
        offset += 2
        offset, old__cells_, old__cells__size = _cell_(
            data, offset, end, old__column_count_, out, OLD_COLUMN, OLD_CELLS
        )
        if offset < 0:
            return offset
    else:
        old_kind_ = 0
    if end - offset < 1:
        return REFUSED
    new_kind_ = uint8(data, offset)
    offset += 1
    if new_kind_ != 0x4E:
        return REFUSED
    if end - offset < 2:
        return REFUSED
    new__column_count_ = int16(data, offset)
    offset += 2
    offset, new__cells_, new__cells__size = _cell_(data, offset, end, new__column_count_, out, NEW_COLUMN, NEW_CELLS)
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put4(out, RELATION_ID_COLUMN, row, relation_id_)
    if old_kind_ != 0:
        put1(out, OLD_KIND_COLUMN, row, old_kind_)
        put_cells(out, OLD_COLUMN, row, old__cells_, old__cells__size)
    put_cells(out, NEW_COLUMN, row, new__cells_, new__cells__size)
    return TAKEN


@inlined
def _delete(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """A deleted row."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 5:
        return REFUSED
    relation_id_ = uint32(data, offset)
    old_kind_ = uint8(data, offset + 4)
    offset += 5
    if old_kind_ != 0x4B and old_kind_ != 0x4F:
        return REFUSED
    if end - offset < 2:
        return REFUSED
    old__column_count_ = int16(data, offset)
    offset += 2
    offset, old__cells_, old__cells__size = _cell_(data, offset, end, old__column_count_, out, OLD_COLUMN, OLD_CELLS)
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put4(out, RELATION_ID_COLUMN, row, relation_id_)
    put1(out, OLD_KIND_COLUMN, row, old_kind_)
    put_cells(out, OLD_COLUMN, row, old__cells_, old__cells__size)
    return TAKEN


@inlined
def _truncate(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Tables that were emptied by one TRUNCATE."""
    if facts & STREAMING_FACT:
        if end - offset < 4:
            return REFUSED
        xid_ = uint32(data, offset)
        offset += 4
    if end - offset < 5:
        return REFUSED
    relation_count_ = int32(data, offset)
    options_ = uint8(data, offset + 4)
    offset += 5
    relation_ids_ = offset
    if relation_count_ < 0 or relation_count_ * 4 > end - offset:
        return REFUSED
    offset += relation_count_ * 4
    if offset != end:
        return REFUSED
    if read8(out, RELATION_IDS_COLUMN + COUNT) >= read8(out, RELATION_IDS_COLUMN + ROOM):
        return FULL
    if facts & STREAMING_FACT:
        put4(out, XID_COLUMN, row, xid_)
    put1(out, OPTIONS_COLUMN, row, options_)
    put_span(out, RELATION_IDS_COLUMN, row, relation_ids_, relation_count_)
    return TAKEN


@inlined
def _stream_start(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Opens a segment of a transaction that is still in progress."""
    if end - offset < 5:
        return REFUSED
    xid_ = uint32(data, offset)
    first_segment_ = uint8(data, offset + 4)
    offset += 5
    if first_segment_ > 1:
        return REFUSED
    if offset != end:
        return REFUSED
    put4(out, XID_COLUMN, row, xid_)
    put1(out, FIRST_SEGMENT_COLUMN, row, first_segment_)
    return TAKEN


@inlined
def _stream_stop(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Closes the segment that Stream Start opened."""
    if offset != end:
        return REFUSED

    return TAKEN


@inlined
def _stream_commit(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Commits a streamed transaction."""
    if end - offset < 29:
        return REFUSED
    xid_ = uint32(data, offset)
    flags_ = uint8(data, offset + 4)
    commit_lsn_ = uint64(data, offset + 5)
    end_lsn_ = uint64(data, offset + 13)
    commit_timestamp_ = int64(data, offset + 21)
    offset += 29
    if flags_ != 0:
        return REFUSED
    if offset != end:
        return REFUSED
    put4(out, XID_COLUMN, row, xid_)
    put8(out, COMMIT_LSN_COLUMN, row, commit_lsn_)
    put8(out, END_LSN_COLUMN, row, end_lsn_)
    put8(out, COMMIT_TIMESTAMP_COLUMN, row, commit_timestamp_ + UNIX_EPOCH)
    return TAKEN


@inlined
def _stream_abort(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Rolls back a streamed transaction, or one of its subtransactions."""
    if end - offset < 8:
        return REFUSED
    xid_ = uint32(data, offset)
    subxid_ = uint32(data, offset + 4)
    offset += 8
    if offset != end:
        return REFUSED
    put4(out, XID_COLUMN, row, xid_)
    put4(out, SUBXID_COLUMN, row, subxid_)
    return TAKEN


@inlined
def _begin_prepare(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Opens a transaction that was prepared; its changes follow, then Prepare."""
    if end - offset < 28:
        return REFUSED
    prepare_lsn_ = uint64(data, offset)
    end_lsn_ = uint64(data, offset + 8)
    prepare_timestamp_ = int64(data, offset + 16)
    xid_ = uint32(data, offset + 24)
    offset += 28
    if not prepare_lsn_ or not end_lsn_:
        return REFUSED
    gid_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid_, offset)):
        return REFUSED
    gid__size = offset - gid_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID_COLUMN + COUNT) >= read8(out, GID_COLUMN + ROOM):
        return FULL
    put8(out, PREPARE_LSN_COLUMN, row, prepare_lsn_)
    put8(out, END_LSN_COLUMN, row, end_lsn_)
    put8(out, PREPARE_TIMESTAMP_COLUMN, row, prepare_timestamp_ + UNIX_EPOCH)
    put4(out, XID_COLUMN, row, xid_)
    put_span(out, GID_COLUMN, row, gid_, gid__size)
    return TAKEN


@inlined
def _prepare(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Closes the transaction that Begin Prepare opened; it is decided later."""
    if end - offset < 29:
        return REFUSED
    flags_ = uint8(data, offset)
    prepare_lsn_ = uint64(data, offset + 1)
    end_lsn_ = uint64(data, offset + 9)
    prepare_timestamp_ = int64(data, offset + 17)
    xid_ = uint32(data, offset + 25)
    offset += 29
    if flags_ != 0 or not prepare_lsn_ or not end_lsn_:
        return REFUSED
    gid_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid_, offset)):
        return REFUSED
    gid__size = offset - gid_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID_COLUMN + COUNT) >= read8(out, GID_COLUMN + ROOM):
        return FULL
    put8(out, PREPARE_LSN_COLUMN, row, prepare_lsn_)
    put8(out, END_LSN_COLUMN, row, end_lsn_)
    put8(out, PREPARE_TIMESTAMP_COLUMN, row, prepare_timestamp_ + UNIX_EPOCH)
    put4(out, XID_COLUMN, row, xid_)
    put_span(out, GID_COLUMN, row, gid_, gid__size)
    return TAKEN


@inlined
def _commit_prepared(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Commits a transaction that was prepared before."""
    if end - offset < 29:
        return REFUSED
    flags_ = uint8(data, offset)
    commit_lsn_ = uint64(data, offset + 1)
    end_lsn_ = uint64(data, offset + 9)
    commit_timestamp_ = int64(data, offset + 17)
    xid_ = uint32(data, offset + 25)
    offset += 29
    if flags_ != 0 or not commit_lsn_ or not end_lsn_:
        return REFUSED
    gid_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid_, offset)):
        return REFUSED
    gid__size = offset - gid_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID_COLUMN + COUNT) >= read8(out, GID_COLUMN + ROOM):
        return FULL
    put8(out, COMMIT_LSN_COLUMN, row, commit_lsn_)
    put8(out, END_LSN_COLUMN, row, end_lsn_)
    put8(out, COMMIT_TIMESTAMP_COLUMN, row, commit_timestamp_ + UNIX_EPOCH)
    put4(out, XID_COLUMN, row, xid_)
    put_span(out, GID_COLUMN, row, gid_, gid__size)
    return TAKEN


@inlined
def _rollback_prepared(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Rolls back a transaction that was prepared before."""
    if end - offset < 37:
        return REFUSED
    flags_ = uint8(data, offset)
    prepare_end_lsn_ = uint64(data, offset + 1)
    rollback_end_lsn_ = uint64(data, offset + 9)
    prepare_timestamp_ = int64(data, offset + 17)
    rollback_timestamp_ = int64(data, offset + 25)
    xid_ = uint32(data, offset + 33)
    offset += 37
    if flags_ != 0 or not prepare_end_lsn_ or not rollback_end_lsn_:
        return REFUSED
    gid_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid_, offset)):
        return REFUSED
    gid__size = offset - gid_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID_COLUMN + COUNT) >= read8(out, GID_COLUMN + ROOM):
        return FULL
    put8(out, PREPARE_END_LSN_COLUMN, row, prepare_end_lsn_)
    put8(out, ROLLBACK_END_LSN_COLUMN, row, rollback_end_lsn_)
    put8(out, PREPARE_TIMESTAMP_COLUMN, row, prepare_timestamp_ + UNIX_EPOCH)
    put8(out, ROLLBACK_TIMESTAMP_COLUMN, row, rollback_timestamp_ + UNIX_EPOCH)
    put4(out, XID_COLUMN, row, xid_)
    put_span(out, GID_COLUMN, row, gid_, gid__size)
    return TAKEN


@inlined
def _stream_prepare(data: Any, offset: int, end: int, row: int, facts: int, out: int) -> int:
    """Prepares a streamed transaction; it is decided later."""
    if end - offset < 29:
        return REFUSED
    flags_ = uint8(data, offset)
    prepare_lsn_ = uint64(data, offset + 1)
    end_lsn_ = uint64(data, offset + 9)
    prepare_timestamp_ = int64(data, offset + 17)
    xid_ = uint32(data, offset + 25)
    offset += 29
    if flags_ != 0 or not prepare_lsn_ or not end_lsn_:
        return REFUSED
    gid_ = offset
    offset = find_zero(data, offset, end)
    if offset < 0 or (facts & UTF8 and not is_utf8(data, gid_, offset)):
        return REFUSED
    gid__size = offset - gid_
    offset += 1
    if offset != end:
        return REFUSED
    if read8(out, GID_COLUMN + COUNT) >= read8(out, GID_COLUMN + ROOM):
        return FULL
    put8(out, PREPARE_LSN_COLUMN, row, prepare_lsn_)
    put8(out, END_LSN_COLUMN, row, end_lsn_)
    put8(out, PREPARE_TIMESTAMP_COLUMN, row, prepare_timestamp_ + UNIX_EPOCH)
    put4(out, XID_COLUMN, row, xid_)
    put_span(out, GID_COLUMN, row, gid_, gid__size)
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
        begin_cells(out, NEW_COLUMN, NEW_CELLS, row)
        begin_cells(out, OLD_COLUMN, OLD_CELLS, row)
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
            elif tag == 0x53:
                result = _stream_start(data, offset, end, row, facts, out)
                after = after | STREAMING_FACT
            elif tag == 0x45:
                result = _stream_stop(data, offset, end, row, facts, out)
                after = after & ~STREAMING_FACT
            elif tag == 0x63:
                result = _stream_commit(data, offset, end, row, facts, out)
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
            elif tag == 0x70:
                result = _stream_prepare(data, offset, end, row, facts, out)
        if result == TAKEN:
            write1(tags, row, tag)
            facts = after
        elif result == FULL or stops:
            return row, facts, result
        else:
            write1(status, row, REFUSED_BIT | (facts & 0x7F))
        row += 1
    begin_cells(out, NEW_COLUMN, NEW_CELLS, row)
    begin_cells(out, OLD_COLUMN, OLD_CELLS, row)
    return row, facts, TAKEN
