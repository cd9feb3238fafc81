"""Memory for the results of a kernel: lent by the thread and reused once given back, or owned by Arrow."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa

from logicalrep_runtime.columnar.located import Cells, CopiedCells, Ints, Located, address
from logicalrep_runtime.columnar.memory import SLACK
from logicalrep_runtime.columnar.rows import CELLS_ENTRIES

# A value takes 17 bytes of a message in an ordinary table of numbers and short texts, including its kind and length.
_BYTES_PER_CELL = 10
_FEWEST_CELLS = 1 << 15
# The number of a row's values is a 16-bit integer.
_MOST_CELLS_OF_ROW = (1 << 15) - 1
_FEWEST_COPIES = 1 << 8
# The next batch is expected to have this many times the values of the last one.
_MORE = 1.125
# The scratch of a larger batch is not kept.
_MOST_CELLS_KEPT = 1 << 22
_FEWEST_SPANS = 1 << 10
_MOST_SPANS_KEPT = 1 << 20


class Scratch:
    """Room for the values of one column of rows, reused for another batch once it is given back."""

    def __init__(self) -> None:
        self.offsets = np.empty(0, np.int64)
        self.kinds = np.empty(0, np.uint8)
        self.starts = np.empty(0, np.int64)
        self.lengths = np.empty(0, np.uint32)
        self.entries = np.zeros(CELLS_ENTRIES, np.int64)

    def prepare(self, count: int, capacity: int) -> None:
        if len(self.offsets) <= count:
            self.offsets = np.empty(2 * count + 1, np.int64)
            self._enter()
        if len(self.starts) < capacity:
            self._resize(max(capacity, _FEWEST_CELLS), 0)
            self._enter()

    def grow(self, filled: int, size: int, more: int) -> None:
        """Make room for the values of another message of `more` bytes, and keep those already there."""
        capacity = _more_cells(len(self.starts), filled, more)
        if capacity > len(self.starts):
            self._resize(capacity, filled)
            self._enter()

    def _resize(self, capacity: int, filled: int) -> None:
        for name in ("kinds", "starts", "lengths"):
            old = getattr(self, name)
            new = np.empty(capacity, old.dtype)
            new[:filled] = old[:filled]
            setattr(self, name, new)

    def _enter(self) -> None:
        addresses = [address(array) for array in (self.offsets, self.kinds, self.starts, self.lengths)]
        self.entries[:] = (*addresses, len(self.starts), 0, 0)

    def give(self, result: Located, number: int, count: int, filled: int, size: int) -> None:
        """Put the found values into the result. They are valid until the room is given back."""
        result.cells[number] = Cells(
            self.offsets[: count + 1], self.kinds[:filled], self.starts[:filled], self.lengths[:filled], size
        )


def _more_cells(capacity: int, filled: int, more: int) -> int:
    """Return a capacity, in values, in which those of another message of `more` bytes fit."""
    needed = filled + min(more, _MOST_CELLS_OF_ROW)
    return capacity if capacity >= needed else max(2 * capacity, needed)


class _Shares:
    """The values of a thread's last batch per byte of it: their bytes and their number."""

    def __init__(self) -> None:
        self.bytes = 1.0
        self.cells = 1 / _BYTES_PER_CELL


class Copies:
    """Buffers for one column of rows' values, later owned by Arrow, somewhat larger than the last batch's."""

    def __init__(self, shares: _Shares, count: int, size: int) -> None:
        self.shares = shares
        self.batch_size = size
        self.offsets = pa.allocate_buffer(4 * (count + 1), resizable=True)
        self.capacity = int(size * shares.cells * _MORE) + _FEWEST_COPIES
        self.size = min(int(size * shares.bytes * _MORE) + _FEWEST_COPIES, size)
        self.kinds = pa.allocate_buffer(self.capacity, resizable=True)
        self.starts = pa.allocate_buffer(4 * (self.capacity + 1), resizable=True)
        self.values = pa.allocate_buffer(self.size + SLACK, resizable=True)
        self.entries = self._entries()

    def grow(self, filled: int, size: int, more: int) -> None:
        """Make room for the values of another message of `more` bytes, and keep those already there."""
        self.capacity = _more_cells(self.capacity, filled, more)
        if self.size - size < more:
            self.size = min(max(2 * self.size, size + more), self.batch_size)
        self._resize(self.capacity, self.size + SLACK)
        self.entries = self._entries()

    def _resize(self, capacity: int, size: int) -> None:
        self.kinds.resize(capacity, shrink_to_fit=True)
        self.starts.resize(4 * (capacity + 1), shrink_to_fit=True)
        self.values.resize(size, shrink_to_fit=True)

    def _entries(self) -> list[int]:
        offsets, kinds, starts = self.offsets.address, self.kinds.address, self.starts.address
        return [offsets, kinds, starts, 0, self.capacity, self.values.address, self.size]

    def give(self, result: Located, number: int, count: int, filled: int, size: int) -> None:
        """Put the found values into the result, in buffers cut to their size."""
        if self.batch_size:
            self.shares.cells, self.shares.bytes = filled / self.batch_size, size / self.batch_size
        self._resize(filled, size)
        np.frombuffer(self.starts, np.int32)[filled] = size
        self.offsets.resize(4 * (count + 1))
        result.copied[number] = CopiedCells(self.offsets, self.kinds, self.starts, self.values)


class Rooms(threading.local):
    """The memory that a thread keeps from batch to batch.

    A piece belongs to its taker alone; the next taker gets another piece. Giving a piece back spares the next batch an
    allocation. A piece that is not given back is freed with its batch.
    """

    def __init__(self) -> None:
        self._scratch: dict[int, Scratch] = {}
        self._shares: list[_Shares] = []
        # Spans by the column's number.
        self._spans: dict[int, Ints] = {}

    def scratch(self, index: int, count: int, size: int) -> Scratch:
        """Take scratch for the index-th column of rows, of a batch of `count` messages and `size` bytes."""
        taken = self._scratch.pop(index, None) or Scratch()
        taken.prepare(count, size // _BYTES_PER_CELL)
        return taken

    def keep_scratch(self, index: int, scratch: Scratch) -> None:
        """Take scratch back, unless it is large."""
        if max(len(scratch.starts), len(scratch.offsets)) <= _MOST_CELLS_KEPT:
            self._scratch[index] = scratch

    def copies(self, index: int, count: int, size: int) -> Copies:
        """Return buffers for the index-th column of rows, of a batch of `count` messages and `size` bytes."""
        while len(self._shares) <= index:
            self._shares.append(_Shares())
        return Copies(self._shares[index], count, size)

    def spans(self, number: int) -> Ints:
        """Take room for the spans of a column."""
        taken = self._spans.pop(number, None)
        return np.empty((_FEWEST_SPANS, 3), np.int64) if taken is None else taken

    def keep_spans(self, number: int, spans: Ints) -> None:
        """Take spans back, unless they are large."""
        if len(spans) <= _MOST_SPANS_KEPT:
            self._spans[number] = spans


ROOMS = Rooms()
