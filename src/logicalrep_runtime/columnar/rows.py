"""Output of compiled kernels: integers, positions of values, and validity bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints, Record, Records
from logicalrep_runtime.columnar.memory import compiled, copy, inlined, read, write

COLUMN = np.dtype([(name, np.int64) for name in ("values", "validity", "count", "size")])
"""A column's record. `values`: the position of the first integer in the block, in integers of its width.
`validity`: the position of the bitmap in bytes. `count`: spans or cells. `size`: their bytes, or a list's items."""

SEEN = 2
"""The entry, in the table of known tags, of a tag that the batch contains; 0 is an unknown tag."""


class CellArrays(NamedTuple):
    """The arrays of one column of cells: for positions, or (the last three) for copies. Unused arrays are empty."""

    kinds: Bytes
    offsets: Int64s
    starts: Int64s
    lengths: NDArray[np.uint32]
    copy_offsets: NDArray[np.int32]
    copy_starts: NDArray[np.int32]
    copies: Bytes


class Block(NamedTuple):
    """A block of memory for integers and validity bitmaps of all columns, viewed as integers of each width."""

    columns: Records
    int8: Bytes
    int16: NDArray[np.int16]
    int32: NDArray[np.int32]
    int64: Int64s


class Out(NamedTuple):
    tags: Bytes
    status: Bytes
    known_tags: Bytes
    """For each byte 0 if it is a tag whose columns have no memory; the kernel sets SEEN for tags in the batch."""
    block: Block
    spans: tuple[Int64s, ...]
    """Memory for each column of texts, bytes or lists, three integers a value: see `located.Spans`."""
    cells: tuple[CellArrays, ...]


@inlined
def put(values: Ints, bits: Bytes, column: Record, row: int, value: int) -> None:
    """Write a row's integer; `values` and `bits` are the block as integers of its width and as bytes."""
    write(values, column.values + row, value)
    mark(bits, column, row)


@inlined
def mark(bits: Bytes, column: Record, row: int) -> None:
    place = column.validity + (row >> 3)
    write(bits, place, read(bits, place) | 1 << (row & 7))


@inlined
def put_span(spans: Ints, bits: Bytes, column: Record, row: int, start: int, length: int) -> None:
    write_span(spans, column.count, row, start, length)
    column.count += 1
    column.size += length
    mark(bits, column, row)


@inlined
def write_span(spans: Ints, index: int, row: int, start: int, length: int) -> None:
    write(spans, 3 * index, row)
    write(spans, 3 * index + 1, start)
    write(spans, 3 * index + 2, length)


@inlined
def put_cells(bits: Bytes, column: Record, row: int, count: int, size: int) -> None:
    column.count = count
    column.size += size
    mark(bits, column, row)


@inlined
def begin_cells(cells: CellArrays, column: Record, row: int) -> None:
    if len(cells.offsets):
        write(cells.offsets, row, column.count)
    else:
        write(cells.copy_offsets, row, column.count)


@compiled
def gather(data: Bytes, starts: Ints, lengths: Ints, offsets: Ints, values: Bytes) -> None:
    """Concatenate values. `offsets` receives the start of each value and, last, the total size."""
    end = 0
    for index in range(len(starts)):
        length = read(lengths, index)
        write(offsets, index, end)
        copy(values, end, data, read(starts, index), length, len(values))
        end += length
    write(offsets, len(starts), end)


@compiled
def gather_texts(data: Bytes, spans: Ints, offsets: Ints, values: Bytes) -> None:
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
    row = end = 0
    for place in range(0, len(spans), 3):
        while row <= read(spans, place):
            write(offsets, row, end)
            row += 1
        end += read(spans, place + 2)
    while row < len(offsets):
        write(offsets, row, end)
        row += 1
