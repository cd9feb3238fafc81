"""Memory for what a kernel finds: lent by the thread and used again once it is given back, or Arrow's, given away."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa

from logicalrep_runtime.columnar.located import Cells, CopiedCells, Ints, Located, address
from logicalrep_runtime.columnar.memory import SLACK
from logicalrep_runtime.columnar.rows import CELLS_ENTRIES

# A value takes 17 bytes of a message in an ordinary table of numbers and short texts, its kind and length included.
_BYTES_PER_CELL = 10
_FEWEST_CELLS = 1 << 15
# A row's values are counted in 16 bits.
_MOST_CELLS_OF_ROW = (1 << 15) - 1
_FEWEST_COPIES = 1 << 8
# The next batch is taken to have so much more of values than the last one.
_MORE = 1.125
# A larger batch's scratch is not kept.
_MOST_CELLS_KEPT = 1 << 22
_FEWEST_SPANS = 1 << 10
_MOST_SPANS_KEPT = 1 << 20


class Scratch:
    """Room for the values of one column of rows, used again for another batch once it is given back."""

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
        """Make room for the values of another message of so many bytes, and keep what is there."""
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
        """What was found; only until the room is given back."""
        result.cells[number] = Cells(
            self.offsets[: count + 1], self.kinds[:filled], self.starts[:filled], self.lengths[:filled], size
        )


def _more_cells(capacity: int, filled: int, more: int) -> int:
    """For how many values to have room, so that those of another message of so many bytes fit."""
    needed = filled + min(more, _MOST_CELLS_OF_ROW)
    return capacity if capacity >= needed else max(2 * capacity, needed)


class _Shares:
    """Of the bytes of a thread's last batch how many were of values, and how many values there were for each."""

    def __init__(self) -> None:
        self.bytes = 1.0
        self.cells = 1 / _BYTES_PER_CELL


class Copies:
    """Buffers for the values of one column of rows, to be Arrow's; with room for somewhat more than there were last."""

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
        """Make room for the values of another message of so many bytes, and keep what is there."""
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
        """What was found, in no more memory than it takes."""
        if self.batch_size:
            self.shares.cells, self.shares.bytes = filled / self.batch_size, size / self.batch_size
        self._resize(filled, size)
        np.frombuffer(self.starts, np.int32)[filled] = size
        self.offsets.resize(4 * (count + 1))
        result.copied[number] = CopiedCells(self.offsets, self.kinds, self.starts, self.values)


class Rooms(threading.local):
    """What a thread keeps from batch to batch. Who takes memory has it alone; the next one has other memory.

    To give it back spares the next batch its own. What is not given back is gone with the batch.
    """

    def __init__(self) -> None:
        self._scratch: dict[int, Scratch] = {}
        self._shares: list[_Shares] = []
        # By the number of the column.
        self._spans: dict[int, Ints] = {}

    def scratch(self, index: int, count: int, size: int) -> Scratch:
        """Scratch for the index-th column of rows, of a batch of so many messages and bytes."""
        taken = self._scratch.pop(index, None) or Scratch()
        taken.prepare(count, size // _BYTES_PER_CELL)
        return taken

    def keep_scratch(self, index: int, scratch: Scratch) -> None:
        """Take it back, unless it is large."""
        if max(len(scratch.starts), len(scratch.offsets)) <= _MOST_CELLS_KEPT:
            self._scratch[index] = scratch

    def copies(self, index: int, count: int, size: int) -> Copies:
        """Buffers for the index-th column of rows, of a batch of so many messages and bytes."""
        while len(self._shares) <= index:
            self._shares.append(_Shares())
        return Copies(self._shares[index], count, size)

    def spans(self, number: int) -> Ints:
        """Room for the spans of a column."""
        taken = self._spans.pop(number, None)
        return np.empty((_FEWEST_SPANS, 3), np.int64) if taken is None else taken

    def keep_spans(self, number: int, spans: Ints) -> None:
        """Take it back, unless it is large."""
        if len(spans) <= _MOST_SPANS_KEPT:
            self._spans[number] = spans


ROOMS = Rooms()
