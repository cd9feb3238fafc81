"""The output of compiled kernels: integers, places of values, and bits for the rows that have them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints, Record, Records
from logicalrep_runtime.columnar.memory import compiled, copy, inlined, read, write

COLUMN = np.dtype([(name, np.int64) for name in ("values", "validity", "count", "size")])
"""A column's record: the places in a block of its first integer, counted in such integers, and of its validity bitmap,
in bytes; the number of spans or of rows' values; the bytes of these, or the items of lists."""

SEEN = 2
"""The mark of a tag that the batch has, in the table of known tags, where 0 stands for unknown."""


class CellArrays(NamedTuple):
    """The arrays of one column of rows' values, for their places or, the last three, for their copies.

    Those that are not asked for are empty.
    """

    kinds: Bytes
    offsets: Int64s
    """The index of each row's first value."""
    starts: Int64s
    lengths: NDArray[np.uint32]
    copy_offsets: NDArray[np.int32]
    """`offsets`, as Arrow has them."""
    copy_starts: NDArray[np.int32]
    """The start of each value among the copies."""
    copies: Bytes


class Block(NamedTuple):
    """A block of memory with the integers and the validity bitmaps of all columns, as integers of each width."""

    columns: Records
    """A COLUMN for each column."""
    int8: Bytes
    int16: NDArray[np.int16]
    int32: NDArray[np.int32]
    int64: Int64s


class Out(NamedTuple):
    """The arrays that a walk fills."""

    tags: Bytes
    """The tag of each row."""
    status: Bytes
    """See `Located.status`."""
    known_tags: Bytes
    """For each byte 0 if it is the tag of a message whose columns have no room; the walk marks tags with SEEN."""
    block: Block
    spans: tuple[Int64s, ...]
    """The room of each column of texts, bytes or lists, three integers a value: see `located.Spans`."""
    cells: tuple[CellArrays, ...]
    """The room of each column of rows' values."""


@inlined
def put(values: Ints, bits: Bytes, column: Record, row: int, value: int) -> None:
    """Note a row's integer in the block, which is given as integers of its width and as bytes."""
    write(values, column.values + row, value)
    mark(bits, column, row)


@inlined
def mark(bits: Bytes, column: Record, row: int) -> None:
    """Set the row's bit in the column's validity bitmap."""
    place = column.validity + (row >> 3)
    write(bits, place, read(bits, place) | 1 << (row & 7))


@inlined
def put_span(spans: Ints, bits: Bytes, column: Record, row: int, start: int, length: int) -> None:
    """Note the start of a text, of bytes or of a list, and its length in bytes or in items."""
    write_span(spans, column.count, row, start, length)
    column.count += 1
    column.size += length
    mark(bits, column, row)


@inlined
def write_span(spans: Ints, index: int, row: int, start: int, length: int) -> None:
    """Write the three integers of a span."""
    write(spans, 3 * index, row)
    write(spans, 3 * index + 1, start)
    write(spans, 3 * index + 2, length)


@inlined
def put_cells(bits: Bytes, column: Record, row: int, count: int, size: int) -> None:
    """Note the number of values up to and including this row's, and the bytes of this row's."""
    column.count = count
    column.size += size
    mark(bits, column, row)


@inlined
def begin_cells(cells: CellArrays, column: Record, row: int) -> None:
    """Note that a row's values begin behind those already there."""
    if len(cells.offsets):
        write(cells.offsets, row, column.count)
    else:
        write(cells.copy_offsets, row, column.count)


@compiled
def gather(data: Bytes, starts: Ints, lengths: Ints, offsets: Ints, values: Bytes) -> None:
    """Copy the bytes of values together. `offsets` gets the start of each value and, last, the end of all."""
    end = 0
    for index in range(len(starts)):
        length = read(lengths, index)
        write(offsets, index, end)
        copy(values, end, data, read(starts, index), length, len(values))
        end += length
    write(offsets, len(starts), end)


@compiled
def gather_texts(data: Bytes, spans: Ints, offsets: Ints, values: Bytes) -> None:
    """Copy spans together like `gather`. Not every row has a span; the offsets are those of all rows."""
    row = end = 0
    for place in range(0, len(spans), 3):
        while row <= read(spans, place):
            write(offsets, row, end)
            row += 1
        length = read(spans, place + 2)
        copy(values, end, data, read(spans, place + 1), length, len(values))
        end += length
    while row < len(offsets):
        write(offsets, row, end)
        row += 1


@compiled
def spread_lists(spans: Ints, offsets: Ints) -> None:
    """Write the offsets of all rows into the items of the lists that some of them have."""
    row = end = 0
    for place in range(0, len(spans), 3):
        while row <= read(spans, place):
            write(offsets, row, end)
            row += 1
        end += read(spans, place + 2)
    while row < len(offsets):
        write(offsets, row, end)
        row += 1
