"""The compiled kernel of protocol version 2: one checked pass over a batch of messages.

Each function reads one message and returns TAKEN, REFUSED, or FULL if memory for cells is too small. A function adds a
message's values only after it has checked the whole message, and checks each count or length against the remaining
bytes before use.

Unchanged functions come from the kernels of earlier versions.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_protocol.columnar.kernel_v1 import (
    _begin,
    _begin_prepare,
    _cell_,
    _commit,
    _commit_prepared,
    _origin,
    _prepare,
    _rollback_prepared,
    _skip_column_,
    _stream_abort,
    column__items,
)
from logicalrep_runtime.columnar.located import (
    FULL,
    OUTSIDE,
    REFUSED,
    REFUSED_BIT,
    TAKEN,
    UNKNOWN,
    UTF8,
    Bytes,
    Int64s,
    Ints,
)
from logicalrep_runtime.columnar.memory import (
    compiled,
    find_zero,
    inlined,
    int16,
    int32,
    int64,
    read,
    uint8,
    uint32,
    uint64,
    write,
)
from logicalrep_runtime.columnar.rows import (
    SEEN,
    Block,
    CellArrays,
    Out,
    begin_cells,
    put,
    put_cells,
    put_span,
)
from logicalrep_runtime.columnar.utf8 import is_utf8

__all__ = [
    "column__items",
    "walk",
]

STREAMING_FACT = 1
TWO_PHASE_FACT = 2
PARALLEL_FACT = 4

# Column numbers, the same in all kernels.
COMMIT_TIMESTAMP_COLUMN = 1
XID_COLUMN = 2
FLAGS_COLUMN = 3
MESSAGE_LSN_COLUMN = 4
PREFIX_COLUMN = 5
CONTENT_COLUMN = 6
COMMIT_LSN_COLUMN = 7
END_LSN_COLUMN = 8
NAME_COLUMN = 10
RELATION_ID_COLUMN = 11
NAMESPACE_COLUMN = 12
REPLICA_IDENTITY_COLUMN = 13
COLUMNS_COLUMN = 14
TYPE_ID_COLUMN = 15
NEW_COLUMN = 16
OLD_KIND_COLUMN = 17
OLD_COLUMN = 18
OPTIONS_COLUMN = 19
RELATION_IDS_COLUMN = 20
FIRST_SEGMENT_COLUMN = 21
PREPARE_LSN_COLUMN = 25
PREPARE_TIMESTAMP_COLUMN = 26
GID_COLUMN = 27


@inlined
def _message(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, spans: tuple[Int64s, ...]) -> int:
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
    if 3 * block.columns[PREFIX_COLUMN].count >= len(spans[0]):
        return FULL
    if 3 * block.columns[CONTENT_COLUMN].count >= len(spans[1]):
        return FULL
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int8, block.int8, block.columns[FLAGS_COLUMN], row, flags_)
    put(block.int64, block.int8, block.columns[MESSAGE_LSN_COLUMN], row, message_lsn_)
    put_span(spans[0], block.int8, block.columns[PREFIX_COLUMN], row, prefix_, prefix__size)
    put_span(spans[1], block.int8, block.columns[CONTENT_COLUMN], row, content_, content__size)
    return TAKEN


@inlined
def _relation(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, spans: tuple[Int64s, ...]) -> int:
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
    if 3 * block.columns[NAMESPACE_COLUMN].count >= len(spans[3]):
        return FULL
    if 3 * block.columns[NAME_COLUMN].count >= len(spans[2]):
        return FULL
    if 3 * block.columns[COLUMNS_COLUMN].count >= len(spans[4]):
        return FULL
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int32, block.int8, block.columns[RELATION_ID_COLUMN], row, relation_id_)
    put_span(spans[3], block.int8, block.columns[NAMESPACE_COLUMN], row, namespace_, namespace__size)
    put_span(spans[2], block.int8, block.columns[NAME_COLUMN], row, name_, name__size)
    put(block.int8, block.int8, block.columns[REPLICA_IDENTITY_COLUMN], row, replica_identity_)
    put_span(spans[4], block.int8, block.columns[COLUMNS_COLUMN], row, columns_, column_count_)
    return TAKEN


@inlined
def _type(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, spans: tuple[Int64s, ...]) -> int:
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
    if 3 * block.columns[NAMESPACE_COLUMN].count >= len(spans[3]):
        return FULL
    if 3 * block.columns[NAME_COLUMN].count >= len(spans[2]):
        return FULL
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int32, block.int8, block.columns[TYPE_ID_COLUMN], row, type_id_)
    put_span(spans[3], block.int8, block.columns[NAMESPACE_COLUMN], row, namespace_, namespace__size)
    put_span(spans[2], block.int8, block.columns[NAME_COLUMN], row, name_, name__size)
    return TAKEN


@inlined
def _insert(
    data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, cells: tuple[CellArrays, ...]
) -> int:
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
    offset, new__cells_, new__cells__size = _cell_(
        data, offset, end, new__column_count_, cells[0], block.columns[NEW_COLUMN]
    )
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int32, block.int8, block.columns[RELATION_ID_COLUMN], row, relation_id_)
    put_cells(block.int8, block.columns[NEW_COLUMN], row, new__cells_, new__cells__size)
    return TAKEN


@inlined
def _update(
    data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, cells: tuple[CellArrays, ...]
) -> int:
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
            data, offset, end, old__column_count_, cells[1], block.columns[OLD_COLUMN]
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
    offset, new__cells_, new__cells__size = _cell_(
        data, offset, end, new__column_count_, cells[0], block.columns[NEW_COLUMN]
    )
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int32, block.int8, block.columns[RELATION_ID_COLUMN], row, relation_id_)
    if old_kind_ != 0:
        put(block.int8, block.int8, block.columns[OLD_KIND_COLUMN], row, old_kind_)
        put_cells(block.int8, block.columns[OLD_COLUMN], row, old__cells_, old__cells__size)
    put_cells(block.int8, block.columns[NEW_COLUMN], row, new__cells_, new__cells__size)
    return TAKEN


@inlined
def _delete(
    data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, cells: tuple[CellArrays, ...]
) -> int:
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
    offset, old__cells_, old__cells__size = _cell_(
        data, offset, end, old__column_count_, cells[1], block.columns[OLD_COLUMN]
    )
    if offset < 0:
        return offset
    if offset != end:
        return REFUSED
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int32, block.int8, block.columns[RELATION_ID_COLUMN], row, relation_id_)
    put(block.int8, block.int8, block.columns[OLD_KIND_COLUMN], row, old_kind_)
    put_cells(block.int8, block.columns[OLD_COLUMN], row, old__cells_, old__cells__size)
    return TAKEN


@inlined
def _truncate(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, spans: tuple[Int64s, ...]) -> int:
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
    if 3 * block.columns[RELATION_IDS_COLUMN].count >= len(spans[5]):
        return FULL
    if facts & STREAMING_FACT:
        put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int8, block.int8, block.columns[OPTIONS_COLUMN], row, options_)
    put_span(spans[5], block.int8, block.columns[RELATION_IDS_COLUMN], row, relation_ids_, relation_count_)
    return TAKEN


@inlined
def _stream_start(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block) -> int:
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
    put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int8, block.int8, block.columns[FIRST_SEGMENT_COLUMN], row, first_segment_)
    return TAKEN


@inlined
def _stream_stop(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block) -> int:
    """Closes the segment that Stream Start opened."""
    if offset != end:
        return REFUSED

    return TAKEN


@inlined
def _stream_commit(data: Bytes, offset: int, end: int, row: int, facts: int, block: Block) -> int:
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
    put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put(block.int64, block.int8, block.columns[COMMIT_LSN_COLUMN], row, commit_lsn_)
    put(block.int64, block.int8, block.columns[END_LSN_COLUMN], row, end_lsn_)
    put(block.int64, block.int8, block.columns[COMMIT_TIMESTAMP_COLUMN], row, commit_timestamp_ + 946684800000000)
    return TAKEN


@inlined
def _stream_prepare(
    data: Bytes, offset: int, end: int, row: int, facts: int, block: Block, spans: tuple[Int64s, ...]
) -> int:
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
    if 3 * block.columns[GID_COLUMN].count >= len(spans[6]):
        return FULL
    put(block.int64, block.int8, block.columns[PREPARE_LSN_COLUMN], row, prepare_lsn_)
    put(block.int64, block.int8, block.columns[END_LSN_COLUMN], row, end_lsn_)
    put(block.int64, block.int8, block.columns[PREPARE_TIMESTAMP_COLUMN], row, prepare_timestamp_ + 946684800000000)
    put(block.int32, block.int8, block.columns[XID_COLUMN], row, xid_)
    put_span(spans[6], block.int8, block.columns[GID_COLUMN], row, gid_, gid__size)
    return TAKEN


@compiled
def walk(data: Bytes, offsets: Ints, row: int, facts: int, stops: bool, out: Out) -> tuple[int, int, int]:
    """Walk messages from a row on. `facts` are the session's facts as bits. Skips rows whose status is not 0.

    Returns the first unread row, the facts at that row, and the reason: TAKEN at the end; REFUSED if `stops` and the
    row is invalid; FULL if memory for its values is too small (continue at the row with more memory); UNKNOWN if the
    columns of its tag have no memory; OUTSIDE if its offsets are wrong.
    """
    end = read(offsets, row)
    if end < 0:
        return row, facts, OUTSIDE
    while row < len(offsets) - 1:
        begin_cells(out.cells[0], out.block.columns[NEW_COLUMN], row)
        begin_cells(out.cells[1], out.block.columns[OLD_COLUMN], row)
        offset = end
        end = read(offsets, row + 1)
        if end < offset or end > len(data):
            return row, facts, OUTSIDE
        result = REFUSED
        tag = 0
        after = facts
        if offset < end:
            tag = uint8(data, offset)
            if read(out.known_tags, tag) == 0:
                return row, facts, UNKNOWN
            write(out.known_tags, tag, SEEN)
            offset += 1
        if tag != 0 and read(out.status, row) == 0:
            if tag == 0x49:
                result = _insert(data, offset, end, row, facts, out.block, out.cells)
            elif tag == 0x55:
                result = _update(data, offset, end, row, facts, out.block, out.cells)
            elif tag == 0x44:
                result = _delete(data, offset, end, row, facts, out.block, out.cells)
            elif tag == 0x42:
                result = _begin(data, offset, end, row, facts, out.block)
            elif tag == 0x4D:
                result = _message(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x43:
                result = _commit(data, offset, end, row, facts, out.block)
            elif tag == 0x4F:
                result = _origin(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x52:
                result = _relation(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x59:
                result = _type(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x54:
                result = _truncate(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x53:
                result = _stream_start(data, offset, end, row, facts, out.block)
                after = after | STREAMING_FACT
            elif tag == 0x45:
                result = _stream_stop(data, offset, end, row, facts, out.block)
                after = after & ~STREAMING_FACT
            elif tag == 0x63:
                result = _stream_commit(data, offset, end, row, facts, out.block)
            elif tag == 0x41:
                result = _stream_abort(data, offset, end, row, facts, out.block)
            elif tag == 0x62 and facts & TWO_PHASE_FACT:
                result = _begin_prepare(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x50 and facts & TWO_PHASE_FACT:
                result = _prepare(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x4B and facts & TWO_PHASE_FACT:
                result = _commit_prepared(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x72 and facts & TWO_PHASE_FACT:
                result = _rollback_prepared(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x70 and facts & TWO_PHASE_FACT:
                result = _stream_prepare(data, offset, end, row, facts, out.block, out.spans)
        if result == TAKEN:
            write(out.tags, row, tag)
            facts = after
        elif result == FULL or stops:
            return row, facts, result
        else:
            write(out.status, row, REFUSED_BIT | (facts & 0x7F))
        row += 1
    begin_cells(out.cells[0], out.block.columns[NEW_COLUMN], row)
    begin_cells(out.cells[1], out.block.columns[OLD_COLUMN], row)
    return row, facts, TAKEN
