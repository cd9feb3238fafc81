"""Walks a batch with a version's compiled kernel, and grows the room for its results where there is too little."""

from __future__ import annotations

import importlib
import threading
from collections import defaultdict
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep_runtime.columnar.buffers import ROOMS, Copies, Scratch
from logicalrep_runtime.columnar.located import (
    FULL,
    REFUSED,
    REFUSED_BIT,
    TAKEN,
    UNKNOWN,
    Ints,
    Located,
    Spans,
    address,
    check_offsets,
    zeros,
)
from logicalrep_runtime.columnar.memory import SLACK
from logicalrep_runtime.columnar.plan import Column, Plan
from logicalrep_runtime.columnar.rows import (
    ADDRESS,
    CELLS_ENTRIES,
    COLUMN_ENTRIES,
    COUNT,
    ROOM,
    SEEN,
    SIZE,
    VALIDITY,
    gather,
    gather_texts,
    spread_lists,
)

_ALIGNED = 64
_SPAN_WIDTH = 24


def locate(plan: Plan, data: Ints, offsets: Ints, facts: int, *, stops: bool, refused: Ints, copies: bool) -> Located:
    """Walk messages that lie at `offsets` in `data`.

    `stops` says whether to stop at an invalid message; `refused` are rows that are known to be invalid. `copies` asks
    for copies of the values of rows, which must not exceed 2 GiB.

    Raises:
        ValueError: an offset lies outside of the data or before the previous one.
    """
    offsets = np.ascontiguousarray(offsets)
    usual = _usual.of[plan]
    while True:
        arrays = _Arrays(_layout(plan, usual.tags, len(offsets) - 1), data, offsets, copies)
        arrays.status[refused] = REFUSED_BIT
        row, after, result = arrays.walk(facts, stops)
        if result == UNKNOWN:
            arrays.give_back()
            usual.add(int(data[offsets[row]]))
        else:
            break
    if result != TAKEN:
        check_offsets(data, offsets)
    seen = arrays.seen()
    usual.was(seen)
    return arrays.located(seen, row, after, result == REFUSED)


@cache
def _kernel(plan: Plan) -> Any:
    return importlib.import_module(plan.kernel)


class _Usual:
    """The tags in a thread's recent batches. A batch with another tag is walked again from its start."""

    def __init__(self) -> None:
        self.tags = b""
        self._batches = 0

    def add(self, tag: int) -> None:
        """Add a tag that a batch has."""
        self.tags = bytes(sorted({*self.tags, tag}))

    def was(self, seen: bytes) -> None:
        """Note the tags of a batch. Tags not seen for many batches are forgotten, as their columns take room."""
        self._batches += 1
        if self._batches == _BATCHES_KNOWN:
            self._batches = 0
            self.tags = seen


_BATCHES_KNOWN = 256


class _UsualTags(threading.local):
    """The usual tags of a thread's batches, by plan."""

    def __init__(self) -> None:
        self.of: defaultdict[Plan, _Usual] = defaultdict(_Usual)


_usual = _UsualTags()


class _Layout:
    """The place of each column of a batch in one block, for the tags and the number of messages it can have."""

    def __init__(self, plan: Plan, tags: bytes, count: int) -> None:
        self.plan = plan
        self.count = count
        numbers = _numbers(plan, tags)
        # Whether each tag may occur. A byte that is no message's tag is refused and needs no column.
        self.known = np.array([tag not in plan.messages or tag in tags for tag in range(256)], np.uint8)
        # Each column begins at a multiple of 64 bytes, as Arrow recommends.
        stride = -(-count // _ALIGNED) * _ALIGNED
        bitmap = -(-count // (8 * _ALIGNED)) * _ALIGNED
        self.table = np.zeros(COLUMN_ENTRIES * len(plan.columns), np.int64)
        self.in_block = np.zeros(len(self.table), np.int64)
        # The slice of each column's bitmap; of columns of fixed width also the slice and dtype of their values.
        self.bitmaps: list[tuple[int, slice]] = []
        self.fixed: list[tuple[int, slice, Any]] = []
        # First come the tags, then whether each message was refused.
        self.status = stride
        place = 2 * stride
        for number in sorted(numbers):
            column = plan.columns[number]
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
        self.spans = [number for number in sorted(numbers) if plan.columns[number].kind in _IN_SPANS]
        self.cells = [
            (number, number in numbers) for number, column in enumerate(plan.columns) if column.kind == "cells"
        ]


_IN_SPANS = ("text", "bytes", "ints", "items")
_layout = lru_cache(64)(_Layout)


@lru_cache(256)
def _numbers(plan: Plan, tags: bytes) -> frozenset[int]:
    """Return the numbers of the columns that messages with these tags have."""
    return frozenset(number for tag in tags if tag in plan.messages for number in plan.messages[tag].columns)


class _Arrays:
    """The kernel's output arrays, for the columns that the batch's messages can have."""

    def __init__(self, layout: _Layout, data: Ints, offsets: Ints, copies: bool) -> None:
        self.layout = layout
        self.data = data
        self.offsets = offsets
        self.block = zeros(layout.size, np.uint8)
        self.status = self.block[layout.status : layout.status + layout.count]
        self.known = layout.known.copy()
        self._block = address(self.block)
        columns = layout.table + layout.in_block * self._block
        self.spans: dict[int, Ints] = {}
        for number in layout.spans:
            self._enter_spans(columns, number, ROOMS.spans(number))
        size = max(int(offsets[-1] - offsets[0]), 0)
        make = ROOMS.copies if copies else ROOMS.scratch
        self.cells: list[tuple[int, Copies | Scratch]] = [
            (number, make(index, layout.count, size if is_present else 0))
            for index, (number, is_present) in enumerate(layout.cells)
        ]
        self.table = np.concatenate([columns, *(room.entries for _, room in self.cells)])

    def walk(self, facts: int, stops: bool) -> tuple[int, int, int]:
        """Let the kernel walk from the first row on, growing its room as needed. Returns the kernel's last result."""
        where = address(self.offsets), self.layout.count, self._block, self._block + self.layout.status
        places = *where, address(self.known)
        kernel = _kernel(self.layout.plan)
        row, result = 0, FULL
        while result == FULL:
            row, facts, result = kernel.walk(self.data, *places, row, facts, stops, address(self.table))
            if result == FULL:
                self._grow(int(self.offsets[row + 1] - self.offsets[row]))
        return row, facts, result

    def _grow(self, more: int) -> None:
        """Make room where another message of `more` bytes may not fit."""
        full = [number for number in self.layout.spans if self._filled(number) == self.table[self._entry(number, ROOM)]]
        for number in full:
            found = self.spans[number]
            self._enter_spans(self.table, number, np.concatenate((found, np.empty_like(found))))
        for number, room in self.cells:
            room.grow(self._filled(number), int(self.table[self._entry(number, SIZE)]), more)
        entries = [room.entries for _, room in self.cells]
        self.table[-CELLS_ENTRIES * len(entries) :] = np.concatenate(entries)

    def _enter_spans(self, table: Ints, number: int, found: Ints) -> None:
        entry = COLUMN_ENTRIES * number
        self.spans[number] = found
        table[entry + ADDRESS], table[entry + ROOM] = address(found), len(found)

    def _entry(self, number: int, part: int) -> int:
        return COLUMN_ENTRIES * number + part

    def _filled(self, number: int) -> int:
        return int(self.table[self._entry(number, COUNT)])

    def seen(self) -> bytes:
        """Return the tags of the located messages."""
        return np.flatnonzero(self.known == SEEN).astype(np.uint8).tobytes()

    def located(self, seen: bytes, count: int, facts: int, stopped: bool) -> Located:
        """Return the results of the finished walk, for the columns of the messages that occurred."""
        layout = self.layout
        result = Located(count, self.block[:count], self.status[:count], facts, stopped, self.give_back)
        there = _numbers(layout.plan, seen)
        filled = self.table[COUNT : len(layout.table) : COLUMN_ENTRIES].tolist()
        sizes = self.table[SIZE : len(layout.table) : COLUMN_ENTRIES].tolist()
        for number, bits in layout.bitmaps:
            if number in there:
                result.validity[number] = self.block[bits]
        for number, values, dtype in layout.fixed:
            if number in there:
                result.fixed[number] = self.block[values].view(dtype)
        if count < layout.count:
            result.validity = {number: bits[: (count + 7) // 8] for number, bits in result.validity.items()}
            result.fixed = {number: values[:count] for number, values in result.fixed.items()}
        for number, found in self.spans.items():
            if number in there:
                result.spans[number] = Spans(found[: filled[number]], sizes[number])
        for number, room in self.cells:
            if number in there:
                room.give(result, number, count, filled[number], sizes[number])
        return result

    def give_back(self) -> None:
        """Give the lent memory back to the thread, for another batch."""
        for number, found in self.spans.items():
            ROOMS.keep_spans(number, found)
        for index, (_, room) in enumerate(self.cells):
            if isinstance(room, Scratch):
                ROOMS.keep_scratch(index, room)
        self.spans, self.cells = {}, []


def gathered(data: Ints, starts: Ints, lengths: Ints, size: int, index_type: Any) -> tuple[Any, Any]:
    """Copy values together. Returns buffers of their offsets and of their bytes, `size` in all."""
    offsets, is_large = _offsets(len(starts), index_type)
    values = pa.allocate_buffer(size + SLACK)
    starts, lengths = np.ascontiguousarray(starts), lengths.astype(np.uint32)
    gather(data, address(starts), address(lengths), len(starts), offsets.address, is_large, values.address)
    return offsets, values.slice(0, size)


def texts(data: Ints, spans: Spans, count: int, index_type: Any) -> tuple[Any, Any]:
    """Copy spans together. Returns buffers of the offsets of all `count` rows and of the bytes."""
    offsets, is_large = _offsets(count, index_type)
    values = pa.allocate_buffer(spans.size + SLACK)
    found = spans.found
    gather_texts(data, address(found), len(found), count, offsets.address, is_large, values.address)
    return offsets, values.slice(0, spans.size)


def lists(spans: Spans, count: int, index_type: Any) -> Any:
    """Return a buffer of the offsets of all `count` rows into the items of lists."""
    offsets, is_large = _offsets(count, index_type)
    spread_lists(address(spans.found), len(spans.found), count, offsets.address, is_large)
    return offsets


def _offsets(count: int, index_type: Any) -> tuple[Any, bool]:
    """Allocate room for offsets, and return whether they have 64 bits."""
    is_large = index_type == np.int64
    return pa.allocate_buffer((8 if is_large else 4) * (count + 1)), is_large


def items(plan: Plan, column: Column, data: Ints, spans: Spans) -> dict[str, Ints | Spans]:
    """Return the fields of list items by name: integers, or the places of texts."""
    total = spans.size
    texts, width = _item_layout(column)
    block, sizes = np.empty(width * total, np.uint8), np.zeros(len(texts), np.int64)
    expand = getattr(_kernel(plan), column.expand)
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
    """Return the text fields of items in order, and the bytes that an item takes in a block."""
    texts = [field for field in column.fields if not field.is_fixed]
    return texts, sum(field.width if field.is_fixed else _SPAN_WIDTH for field in column.fields)
