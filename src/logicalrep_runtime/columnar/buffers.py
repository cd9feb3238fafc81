"""Memory for a native walk's results: reused from batch to batch, or owned by Arrow."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep_runtime.columnar.located import Bytes, Cells, CopiedCells, Int64s, Located

# A value takes 17 bytes of a message in an ordinary table of numbers and short texts, including its kind and length.
_BYTES_PER_CELL = 10
_FEWEST_CELLS = 1 << 15
# The number of a row's values is a 16-bit integer.
_MOST_CELLS_OF_ROW = (1 << 15) - 1
_FEWEST_COPIES = 1 << 8
# The next batch is expected to have this many times the values of the last one.
_MORE = 1.125
# Scratch of a larger batch is freed.
_MOST_CELLS_KEPT = 1 << 22
_FEWEST_SPANS = 1 << 10
_MOST_SPANS_KEPT = 1 << 20

_NO_PLACES, _NO_LENGTHS = np.empty(0, np.int64), np.empty(0, np.uint32)
_NO_COPIES = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8)


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


class Scratch:
    """Reusable memory for the cells of one column."""

    def __init__(self) -> None:
        kinds = np.empty(0, np.uint8)
        self.arrays = CellArrays(kinds, _NO_PLACES, _NO_PLACES, _NO_LENGTHS, *_NO_COPIES)

    @property
    def capacity(self) -> int:
        return len(self.arrays.kinds)

    def prepare(self, count: int, capacity: int) -> None:
        if len(self.arrays.offsets) <= count:
            self.arrays = self.arrays._replace(offsets=np.empty(2 * count + 1, np.int64))
        if self.capacity < capacity:
            self._resize(max(capacity, _FEWEST_CELLS), 0)

    def grow(self, filled: int, size: int, more: int) -> None:
        capacity = _more_cells(self.capacity, filled, more)
        if capacity > self.capacity:
            self._resize(capacity, filled)

    def _resize(self, capacity: int, filled: int) -> None:
        resized = {}
        for name in ("kinds", "starts", "lengths"):
            old = getattr(self.arrays, name)
            resized[name] = np.empty(capacity, old.dtype)
            resized[name][:filled] = old[:filled]
        self.arrays = self.arrays._replace(**resized)

    def give(self, result: Located, number: int, count: int, filled: int, size: int) -> None:
        """Add the located cells to the result. They are valid until the scratch is returned."""
        kinds, offsets, starts, lengths = self.arrays[:4]
        result.cells[number] = Cells(offsets[: count + 1], kinds[:filled], starts[:filled], lengths[:filled], size)


def _more_cells(capacity: int, filled: int, more: int) -> int:
    needed = filled + min(more, _MOST_CELLS_OF_ROW)
    return capacity if capacity >= needed else max(2 * capacity, needed)


class _Shares:
    """Bytes of cells, and number of cells, per byte of a thread's last batch."""

    def __init__(self) -> None:
        self.bytes = 1.0
        self.cells = 1 / _BYTES_PER_CELL


class Copies:
    """Buffers for one column's cells, later owned by Arrow; slightly larger than the last batch needed."""

    def __init__(self, shares: _Shares, count: int, size: int) -> None:
        self.shares = shares
        self.batch_size = size
        self.offsets = pa.allocate_buffer(4 * (count + 1), resizable=True)
        self.capacity = int(size * shares.cells * _MORE) + _FEWEST_COPIES
        self.size = min(int(size * shares.bytes * _MORE) + _FEWEST_COPIES, size)
        self.kinds = pa.allocate_buffer(self.capacity, resizable=True)
        self.starts = pa.allocate_buffer(4 * (self.capacity + 1), resizable=True)
        self.values = pa.allocate_buffer(self.size, resizable=True)

    def grow(self, filled: int, size: int, more: int) -> None:
        self.capacity = _more_cells(self.capacity, filled, more)
        if self.size - size < more:
            self.size = min(max(2 * self.size, size + more), self.batch_size)
        self._resize(self.capacity, self.size)

    def _resize(self, capacity: int, size: int) -> None:
        self.kinds.resize(capacity, shrink_to_fit=True)
        self.starts.resize(4 * (capacity + 1), shrink_to_fit=True)
        self.values.resize(size, shrink_to_fit=True)

    @property
    def arrays(self) -> CellArrays:
        kinds, values = np.frombuffer(self.kinds, np.uint8), np.frombuffer(self.values, np.uint8)
        offsets, starts = np.frombuffer(self.offsets, np.int32), np.frombuffer(self.starts, np.int32)
        return CellArrays(kinds, _NO_PLACES, _NO_PLACES, _NO_LENGTHS, offsets, starts, values)

    def give(self, result: Located, number: int, count: int, filled: int, size: int) -> None:
        if self.batch_size:
            self.shares.cells, self.shares.bytes = filled / self.batch_size, size / self.batch_size
        self._resize(filled, size)
        np.frombuffer(self.starts, np.int32)[filled] = size
        self.offsets.resize(4 * (count + 1))
        result.copied[number] = CopiedCells(self.offsets, self.kinds, self.starts, self.values)


class Rooms(threading.local):
    """Memory that a thread reuses from batch to batch; scratch and spans belong to one batch at a time."""

    def __init__(self) -> None:
        self._scratch: dict[int, Scratch] = {}
        self._shares: list[_Shares] = []
        # Int64s by the column's number.
        self._spans: dict[int, Int64s] = {}

    def take_scratch(self, index: int, count: int, size: int) -> Scratch:
        taken = self._scratch.pop(index, None) or Scratch()
        taken.prepare(count, size // _BYTES_PER_CELL)
        return taken

    def keep_scratch(self, index: int, scratch: Scratch) -> None:
        if max(scratch.capacity, len(scratch.arrays.offsets)) <= _MOST_CELLS_KEPT:
            self._scratch[index] = scratch

    def take_copies(self, index: int, count: int, size: int) -> Copies:
        while len(self._shares) <= index:
            self._shares.append(_Shares())
        return Copies(self._shares[index], count, size)

    def take_spans(self, number: int) -> Int64s:
        taken = self._spans.pop(number, None)
        return np.empty(3 * _FEWEST_SPANS, np.int64) if taken is None else taken

    def keep_spans(self, number: int, spans: Int64s) -> None:
        if len(spans) <= 3 * _MOST_SPANS_KEPT:
            self._spans[number] = spans


ROOMS = Rooms()
