"""Walks a batch with a version's compiled kernel: makes room for what it finds, and more where that was too little."""

from __future__ import annotations

import importlib
import threading
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.columnar.plan import Column, Plan
from logicalrep.columnar.rows import (
    ADDRESS,
    CELLS_ENTRIES,
    COLUMN_ENTRIES,
    COUNT,
    SIZE,
    VALIDITY,
    gather4,
    gather8,
    scan,
)
from logicalrep.columnar.walked import FULL, REFUSED, REFUSED_BIT, Cells, Ints, Spans, Walked, address, room, zeros

_ALIGNED = 64
_WIDTHS = (1, 2, 4, 8)

# A value takes 17 bytes of a message in an ordinary table of numbers and short texts, its kind and length included.
_BYTES_PER_CELL = 10
_FEWEST_CELLS = 1 << 15
# A larger batch's scratch is given back when it is done.
_MOST_CELLS_KEPT = 1 << 22


def walk(plan: Plan, data: Ints, offsets: Ints, facts: int, *, stops: bool, refused: Ints) -> Walked:
    """Walk messages that lie at `offsets` in `data`.

    `stops` says whether to stop at one that is no message; `refused` are rows that are known to be none.

    Raises:
        ValueError: an offset lies outside of the data or before the one in front of it.
    """
    kernel = _kernel(plan)
    count = len(offsets) - 1
    offsets = np.ascontiguousarray(offsets)
    where = address(offsets), count
    tag_counts = np.zeros(256, np.int64)
    wrong = scan(data, *where, address(tag_counts))
    if wrong >= 0:
        raise ValueError(f"the offsets of message {wrong} do not lie within the batch's data")
    present = bytes(np.flatnonzero(tag_counts))
    arrays = _Arrays(plan, present, count, tag_counts, int(offsets[-1] - offsets[0]))
    arrays.rows[count:][refused] = REFUSED_BIT
    places = *where, address(arrays.rows), address(arrays.rows) + count
    row, result = 0, FULL
    while result == FULL:
        row, facts, result = kernel.walk(data, *places, row, facts, stops, arrays.address)
        if result == FULL:
            arrays.grow()
    return arrays.walked(row, facts, result == REFUSED)


@lru_cache(16)
def _kernel(plan: Plan) -> Any:
    return importlib.import_module(plan.kernel)


class _Layout:
    """Where each column of a batch lies in one block, for the kinds of messages and the number of them that it has."""

    def __init__(self, plan: Plan, present: bytes, count: int) -> None:
        numbers = {number for tag in present if tag in plan.messages for number in plan.messages[tag].columns.values()}
        # Each column begins at a multiple of 64 bytes, as Arrow would have it.
        stride = -(-count // _ALIGNED) * _ALIGNED
        bitmap = -(-count // (8 * _ALIGNED)) * _ALIGNED
        self.columns = [(number, plan.columns[number]) for number in sorted(numbers)]
        self.table = np.zeros(COLUMN_ENTRIES * len(plan.columns), np.int64)
        self.in_block = np.zeros(len(self.table), np.int64)
        # Of each column the slice of its bitmap; of those of fixed width that of their values, and their dtype.
        self.bitmaps: list[tuple[int, slice]] = []
        self.fixed: list[tuple[int, slice, Any]] = []
        place = 0
        for number, column in self.columns:
            entry = COLUMN_ENTRIES * number
            self.bitmaps.append((number, slice(place, place + (count + 7) // 8)))
            self.in_block[entry + VALIDITY] = 1
            self.table[entry + VALIDITY] = place
            place += bitmap
            if column.is_fixed:
                self.in_block[entry + ADDRESS] = 1
                self.table[entry + ADDRESS] = place
                values = slice(place, place + column.width * count)
                self.fixed.append((number, values, np.dtype(f"i{column.width}")))
                place += column.width * stride
        self.size = place
        self.cells = [
            (number, number in numbers) for number, column in enumerate(plan.columns) if column.kind == "cells"
        ]
        self.spans = [number for number, column in self.columns if not column.is_fixed and column.kind != "cells"]
        # The counts of the tags whose messages have each of them, to be added up.
        self.span_tags = {
            number: [tag for tag in present if tag in plan.messages and number in plan.messages[tag].columns.values()]
            for number in self.spans
        }


_layout = lru_cache(64)(_Layout)


class _Arrays:
    """What a kernel writes to, for the columns that the batch's messages can have."""

    def __init__(self, plan: Plan, present: bytes, count: int, tag_counts: Ints, size: int) -> None:
        self.layout = layout = _layout(plan, present, count)
        self.count = count
        self.rows = zeros(2 * count, np.uint8)
        self.block = zeros(layout.size, np.uint8)
        columns = layout.table + layout.in_block * address(self.block)
        self.spans: dict[int, Ints] = {}
        for number in layout.spans:
            expected = int(tag_counts[layout.span_tags[number]].sum())
            self.spans[number] = found = np.empty(3 * expected, np.int64)
            columns[COLUMN_ENTRIES * number + ADDRESS] = address(found)
        self.cells = [
            (number, _scratch(index, count, size // _BYTES_PER_CELL if is_present else 0))
            for index, (number, is_present) in enumerate(layout.cells)
        ]
        self.table = np.concatenate([columns, *(scratch.entries for _, scratch in self.cells)])
        self.address = address(self.table)

    def grow(self) -> None:
        """Make twice the room for rows' values: the kernel does not say for which."""
        for number, scratch in self.cells:
            scratch.grow(int(self.table[COLUMN_ENTRIES * number + COUNT]))
        entries = [scratch.entries for _, scratch in self.cells]
        self.table[-CELLS_ENTRIES * len(entries) :] = np.concatenate(entries)

    def walked(self, count: int, facts: int, stopped: bool) -> Walked:
        """What was found, once the walk is at its end."""
        result = Walked(count, self.rows[:count], self.rows[self.count : self.count + count], facts, stopped)
        filled = self.table[COUNT : len(self.layout.table) : COLUMN_ENTRIES].tolist()
        sizes = self.table[SIZE : len(self.layout.table) : COLUMN_ENTRIES].tolist()
        for number, bits in self.layout.bitmaps:
            result.validity[number] = self.block[bits]
        for number, values, dtype in self.layout.fixed:
            result.fixed[number] = self.block[values].view(dtype)
        if count < self.count:
            result.validity = {number: bits[: (count + 7) // 8] for number, bits in result.validity.items()}
            result.fixed = {number: values[:count] for number, values in result.fixed.items()}
        for number in self.layout.spans:
            rows, starts, lengths = self.spans[number][: 3 * filled[number]].reshape(-1, 3).T.copy()
            result.spans[number] = Spans(rows, starts, lengths)
        for number, scratch in self.cells:
            if number in result.validity:
                result.cells[number] = scratch.cells(count, filled[number], sizes[number])
        return result


class _Scratch:
    """Room for the values of one column of rows, used again for the thread's next batch."""

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

    def grow(self, filled: int) -> None:
        """Make twice the room, and keep what is there."""
        self._resize(2 * len(self.starts) + _FEWEST_CELLS, filled)
        self._enter()

    def _resize(self, capacity: int, filled: int) -> None:
        for name in ("kinds", "starts", "lengths"):
            old = getattr(self, name)
            new = np.empty(capacity, old.dtype)
            new[:filled] = old[:filled]
            setattr(self, name, new)

    def _enter(self) -> None:
        addresses = [address(array) for array in (self.offsets, self.kinds, self.starts, self.lengths)]
        self.entries[:] = (*addresses, len(self.starts))

    def cells(self, count: int, filled: int, size: int) -> Cells:
        """What was found; only until the thread's next batch."""
        return Cells(self.offsets[: count + 1], self.kinds[:filled], self.starts[:filled], self.lengths[:filled], size)


_local = threading.local()


def _scratch(index: int, count: int, capacity: int) -> _Scratch:
    """The thread's scratch for the index-th column of rows."""
    kept: list[_Scratch] = _local.__dict__.setdefault("kept", [])
    while len(kept) <= index:
        kept.append(_Scratch())
    if max(len(kept[index].starts), len(kept[index].offsets)) > _MOST_CELLS_KEPT:
        kept[index] = _Scratch()
    kept[index].prepare(count, capacity)
    return kept[index]


def gathered(data: Ints, starts: Ints, lengths: Ints, size: int, index_type: Any) -> tuple[Ints, Any]:
    """The bytes of values, `size` in all, together: where each begins and, last, where all end; a pyarrow.Buffer."""
    offsets = room(len(starts) + 1, index_type)
    values = pa.allocate_buffer(size)
    gather = gather8 if index_type == np.int64 else gather4
    lengths = lengths.astype(np.uint32, copy=False)
    target = np.frombuffer(values, np.uint8)
    gather(data, address(starts), address(lengths), len(starts), address(offsets), target)
    return offsets, values


def items(plan: Plan, column: Column, data: Ints, spans: Spans) -> dict[str, Ints | Spans]:
    """What the items of lists have, field by field: integers, or where their texts are."""
    total = int(spans.lengths.sum())
    numbers = dict.fromkeys(_WIDTHS, 0)
    texts = 0
    for field in column.fields:
        if field.is_fixed:
            numbers[field.width] += 1
        else:
            texts += 1
    ints = {width: room(numbers[width] * total, f"i{width}") for width in _WIDTHS}
    found = room(2 * texts * total, np.int64)
    kernel = _kernel(plan)
    expand = getattr(kernel, f"{column.name}_items")
    places = [address(array) for array in (*ints.values(), found)]
    expand(data, address(spans.starts), address(spans.lengths), len(spans.starts), total, *places)
    result: dict[str, Ints | Spans] = {}
    taken = dict.fromkeys((*_WIDTHS, 0), 0)
    for field in column.fields:
        width = field.width if field.is_fixed else 0
        start = taken[width] * total
        taken[width] += 1
        if field.is_fixed:
            result[field.name] = ints[width][start : start + total]
        else:
            start *= 2
            result[field.name] = Spans(
                np.arange(total), found[start : start + total], found[start + total : start + 2 * total]
            )
    return result
