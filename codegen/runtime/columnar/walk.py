"""Walks a batch with a version's compiled kernel: makes room for what it finds, and more where that was too little."""

from __future__ import annotations

import importlib
import threading
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.columnar.memory import SLACK
from logicalrep.columnar.plan import Column, Plan
from logicalrep.columnar.rows import (
    ADDRESS,
    CELLS_ENTRIES,
    COLUMN_ENTRIES,
    COUNT,
    SIZE,
    VALIDITY,
    gather,
    gather_texts,
    scan,
    spread_lists,
)
from logicalrep.columnar.walked import (
    FULL,
    REFUSED,
    REFUSED_BIT,
    Cells,
    CopiedCells,
    Ints,
    Spans,
    Walked,
    address,
    zeros,
)

_ALIGNED = 64
_SPAN_WIDTH = 24

# A value takes 17 bytes of a message in an ordinary table of numbers and short texts, its kind and length included.
_BYTES_PER_CELL = 10
_FEWEST_CELLS = 1 << 15
_FEWEST_COPIES = 1 << 8
# The next batch is taken to have so much more of values than the last one.
_MORE = 1.125
# A larger batch's scratch is given back when it is done.
_MOST_CELLS_KEPT = 1 << 22


def walk(plan: Plan, data: Ints, offsets: Ints, facts: int, *, stops: bool, refused: Ints, copies: bool) -> Walked:
    """Walk messages that lie at `offsets` in `data`.

    `stops` says whether to stop at one that is no message; `refused` are rows that are known to be none. `copies` asks
    for the values of rows as copies, of which there must not be more than 2 GiB.

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
    arrays = _Arrays(plan, tag_counts, count, int(offsets[-1] - offsets[0]), copies)
    arrays.status[refused] = REFUSED_BIT
    places = *where, arrays.tags_address, arrays.status_address
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
        # First the tags, then whether each message was refused.
        self.status = stride
        place = 2 * stride
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
        spans = [number for number, column in self.columns if not column.is_fixed and column.kind != "cells"]
        # The tags whose messages have each of them.
        self.span_tags = [
            (number, [tag for tag in present if tag in plan.messages and number in plan.messages[tag].columns.values()])
            for number in spans
        ]


_layout = lru_cache(64)(_Layout)


class _Arrays:
    """What a kernel writes to, for the columns that the batch's messages can have."""

    def __init__(self, plan: Plan, tag_counts: Ints, count: int, size: int, copies: bool) -> None:
        present = np.flatnonzero(tag_counts).astype(np.uint8).tobytes()
        self.layout = layout = _layout(plan, present, count)
        self.count = count
        self.block = zeros(layout.size, np.uint8)
        self.tags_address = address(self.block)
        self.status_address = self.tags_address + layout.status
        self.status = self.block[layout.status : layout.status + count]
        columns = layout.table + layout.in_block * self.tags_address
        self.spans: list[tuple[int, Ints]] = []
        counts = dict(zip(present, tag_counts[tag_counts > 0].tolist(), strict=True))
        for number, tags in layout.span_tags:
            found = np.empty((sum(counts[tag] for tag in tags), 3), np.int64)
            columns[COLUMN_ENTRIES * number + ADDRESS] = address(found)
            self.spans.append((number, found))
        room_for_cells = _room_for_copies if copies else _scratch
        self.cells = [
            (number, room_for_cells(index, count, size if is_present else 0))
            for index, (number, is_present) in enumerate(layout.cells)
        ]
        self.table = np.concatenate([columns, *(scratch.entries for _, scratch in self.cells)])
        self.address = address(self.table)

    def grow(self) -> None:
        """Make twice the room for rows' values: the kernel does not say for which."""
        for number, scratch in self.cells:
            entry = COLUMN_ENTRIES * number
            scratch.grow(int(self.table[entry + COUNT]), int(self.table[entry + SIZE]))
        entries = [scratch.entries for _, scratch in self.cells]
        self.table[-CELLS_ENTRIES * len(entries) :] = np.concatenate(entries)

    def walked(self, count: int, facts: int, stopped: bool) -> Walked:
        """What was found, once the walk is at its end."""
        result = Walked(count, self.block[:count], self.status[:count], facts, stopped)
        filled = self.table[COUNT : len(self.layout.table) : COLUMN_ENTRIES].tolist()
        sizes = self.table[SIZE : len(self.layout.table) : COLUMN_ENTRIES].tolist()
        for number, bits in self.layout.bitmaps:
            result.validity[number] = self.block[bits]
        for number, values, dtype in self.layout.fixed:
            result.fixed[number] = self.block[values].view(dtype)
        if count < self.count:
            result.validity = {number: bits[: (count + 7) // 8] for number, bits in result.validity.items()}
            result.fixed = {number: values[:count] for number, values in result.fixed.items()}
        for number, found in self.spans:
            result.spans[number] = Spans(found[: filled[number]], sizes[number])
        for number, scratch in self.cells:
            if number in result.validity:
                scratch.give(result, number, count, filled[number], sizes[number])
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

    def grow(self, filled: int, size: int) -> None:
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
        self.entries[:] = (*addresses, len(self.starts), 0, 0)

    def give(self, result: Walked, number: int, count: int, filled: int, size: int) -> None:
        """What was found; only until the thread's next batch."""
        result.cells[number] = Cells(
            self.offsets[: count + 1], self.kinds[:filled], self.starts[:filled], self.lengths[:filled], size
        )


class _Shares:
    """Of the bytes of a thread's last batch how many were of values, and how many values there were for each."""

    def __init__(self) -> None:
        self.bytes = 1.0
        self.cells = 1 / _BYTES_PER_CELL


class _Copies:
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

    def grow(self, filled: int, size: int) -> None:
        """Make twice the room, and keep what is there."""
        self.capacity = 2 * self.capacity
        self.size = min(2 * self.size, self.batch_size)
        self._resize(self.capacity, self.size + SLACK)
        self.entries = self._entries()

    def _resize(self, capacity: int, size: int) -> None:
        self.kinds.resize(capacity, shrink_to_fit=True)
        self.starts.resize(4 * (capacity + 1), shrink_to_fit=True)
        self.values.resize(size, shrink_to_fit=True)

    def _entries(self) -> list[int]:
        offsets, kinds, starts = self.offsets.address, self.kinds.address, self.starts.address
        return [offsets, kinds, starts, 0, self.capacity, self.values.address, self.size]

    def give(self, result: Walked, number: int, count: int, filled: int, size: int) -> None:
        """What was found, in no more memory than it takes."""
        if self.batch_size:
            self.shares.cells, self.shares.bytes = filled / self.batch_size, size / self.batch_size
        self._resize(filled, size)
        np.frombuffer(self.starts, np.int32)[filled] = size
        self.offsets.resize(4 * (count + 1))
        result.copied[number] = CopiedCells(self.offsets, self.kinds, self.starts, self.values)


_local = threading.local()


def _scratch(index: int, count: int, size: int) -> _Scratch:
    """The thread's scratch for the index-th column of rows."""
    kept: list[_Scratch] = _local.__dict__.setdefault("kept", [])
    while len(kept) <= index:
        kept.append(_Scratch())
    if max(len(kept[index].starts), len(kept[index].offsets)) > _MOST_CELLS_KEPT:
        kept[index] = _Scratch()
    kept[index].prepare(count, size // _BYTES_PER_CELL)
    return kept[index]


def _room_for_copies(index: int, count: int, size: int) -> _Copies:
    """Buffers for the index-th column of rows."""
    shares: list[_Shares] = _local.__dict__.setdefault("shares", [])
    while len(shares) <= index:
        shares.append(_Shares())
    return _Copies(shares[index], count, size)


def gathered(data: Ints, starts: Ints, lengths: Ints, size: int, index_type: Any) -> tuple[Any, Any]:
    """Buffers of where each value begins and, last, where all end; and of their bytes together, `size` in all."""
    offsets, is_large = _offsets(len(starts), index_type)
    values = pa.allocate_buffer(size + SLACK)
    starts, lengths = np.ascontiguousarray(starts), lengths.astype(np.uint32)
    gather(data, address(starts), address(lengths), len(starts), offsets.address, is_large, values.address)
    return offsets, values.slice(0, size)


def texts(data: Ints, spans: Spans, count: int, index_type: Any) -> tuple[Any, Any]:
    """Buffers of the offsets of all `count` rows, and of the bytes of spans together."""
    offsets, is_large = _offsets(count, index_type)
    values = pa.allocate_buffer(spans.size + SLACK)
    found = spans.found
    gather_texts(data, address(found), len(found), count, offsets.address, is_large, values.address)
    return offsets, values.slice(0, spans.size)


def lists(spans: Spans, count: int, index_type: Any) -> Any:
    """A buffer of the offsets of all `count` rows into the items of lists."""
    offsets, is_large = _offsets(count, index_type)
    spread_lists(address(spans.found), len(spans.found), count, offsets.address, is_large)
    return offsets


def _offsets(count: int, index_type: Any) -> tuple[Any, bool]:
    """Room for them, and whether they have 64 bits."""
    is_large = index_type == np.int64
    return pa.allocate_buffer((8 if is_large else 4) * (count + 1)), is_large


def items(plan: Plan, column: Column, data: Ints, spans: Spans) -> dict[str, Ints | Spans]:
    """What the items of lists have, field by field: integers, or where their texts are."""
    total = spans.size
    texts, width = _item_layout(column)
    block, sizes = np.empty(width * total, np.uint8), np.zeros(len(texts), np.int64)
    expand = getattr(_kernel(plan), f"{column.name}_items")
    expand(data, address(spans.found), len(spans.found), total, address(block), address(sizes))
    result: dict[str, Ints | Spans] = {}
    for field in column.fields:
        if field.is_fixed:
            values = block[field.place * total : (field.place + field.width) * total]
            result[field.name] = values.view(f"i{field.width}")
    for text, size in zip(texts, sizes.tolist(), strict=True):
        values = block[text.place * total : (text.place + _SPAN_WIDTH) * total]
        result[text.name] = Spans(values.view(np.int64).reshape(-1, 3), size)
    return result


@lru_cache(64)
def _item_layout(column: Column) -> tuple[list[Column], int]:
    """The texts of items, in their order; and the bytes that an item takes in a block."""
    texts = [field for field in column.fields if not field.is_fixed]
    return texts, sum(field.width if field.is_fixed else _SPAN_WIDTH for field in column.fields)
