"""The compiled kernel of protocol version 3: one checked pass over a batch of messages.

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
    _commit,
    _commit_prepared,
    _origin,
    _prepare,
    _rollback_prepared,
    _stream_abort,
    column__items,
)
from logicalrep_protocol.columnar.kernel_v2 import (
    _delete,
    _insert,
    _message,
    _relation,
    _stream_commit,
    _stream_prepare,
    _stream_start,
    _stream_stop,
    _truncate,
    _type,
    _update,
)
from logicalrep_runtime.columnar.located import (
    FULL,
    OUTSIDE,
    REFUSED,
    REFUSED_BIT,
    TAKEN,
    UNKNOWN,
    Bytes,
    Ints,
)
from logicalrep_runtime.columnar.memory import (
    compiled,
    read,
    uint8,
    write,
)
from logicalrep_runtime.columnar.rows import (
    SEEN,
    Out,
    begin_cells,
)

__all__ = [
    "column__items",
    "walk",
]

STREAMING_FACT = 1
TWO_PHASE_FACT = 2
PARALLEL_FACT = 4

# Column numbers, the same in all kernels.
NEW_COLUMN = 16
OLD_COLUMN = 18


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
            elif tag == 0x62:
                result = _begin_prepare(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x50:
                result = _prepare(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x4B:
                result = _commit_prepared(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x72:
                result = _rollback_prepared(data, offset, end, row, facts, out.block, out.spans)
            elif tag == 0x70:
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
