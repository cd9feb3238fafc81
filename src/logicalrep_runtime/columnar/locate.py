"""Walks a batch: by the native walk, growing the memory for results as needed, or else by `parse`."""

from __future__ import annotations

import threading
from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep_runtime.columnar import gathering
from logicalrep_runtime.columnar.buffers import COLUMN, ROOMS, SEEN, Copies, Scratch
from logicalrep_runtime.columnar.located import (
    FULL,
    REFUSED,
    REFUSED_BIT,
    TAKEN,
    UNKNOWN,
    UTF8,
    Bytes,
    Int64s,
    Ints,
    Located,
    Spans,
    check_offsets,
    room,
    zeros,
)
from logicalrep_runtime.columnar.native_walk import NativeWalk, native_walk
from logicalrep_runtime.columnar.parsed_walk import walk_parsed
from logicalrep_runtime.columnar.plan import Plan
from logicalrep_runtime.columnar.session import ColumnarSession, bits_of
from logicalrep_runtime.native import native_module

_ALIGNED = 64
IndexType = type[np.signedinteger[Any]]
_NO_SPANS = np.empty(0, np.int64)


def locate(
    session: ColumnarSession, data: Bytes, offsets: Int64s, *, stops: bool, refused: Int64s, copies: bool
) -> Located:
    """Return the positions of all values of a batch; `refused` has the rows that are known to be invalid.

    Raises ValueError for offsets out of bounds or in a wrong order.
    """
    offsets = np.ascontiguousarray(offsets)
    native = native_walk(session.plan)
    if native is None:
        return walk_parsed(session, data, offsets, stops=stops, refused=refused)
    facts = bits_of(session) | (UTF8 if session.encoding == "utf-8" else 0)
    usual = _usual.of[session.plan]
    while True:
        arrays = _Arrays(_layout(session.plan, usual.tags, len(offsets) - 1), data, offsets, copies)
        arrays.status[refused] = REFUSED_BIT
        row, after, result = arrays.walk(native, facts, stops)
        if result == UNKNOWN:
            arrays.give_back()
            usual.add(int(data[offsets[row]]))
        else:
            break
    if result != TAKEN:
        check_offsets(data, offsets)
    seen = arrays.seen()
    usual.record_tags(seen)
    return arrays.located(seen, row, after & ~UTF8, result == REFUSED)


def _copying() -> Any:
    """Return the native functions that copy values together, or the functions in Python."""
    return native_module() or gathering


class _Usual:
    """The tags of a thread's recent batches. A batch with another tag is walked again from its start."""

    def __init__(self) -> None:
        self.tags = b""
        self._batches = 0

    def add(self, tag: int) -> None:
        self.tags = bytes(sorted({*self.tags, tag}))

    def record_tags(self, seen: bytes) -> None:
        """Record a batch's tags. Drops tags absent from many batches, as their columns take memory."""
        self._batches += 1
        if self._batches == _BATCHES_KNOWN:
            self._batches = 0
            self.tags = seen


_BATCHES_KNOWN = 256


class _UsualTags(threading.local):
    def __init__(self) -> None:
        self.of: defaultdict[Plan, _Usual] = defaultdict(_Usual)


_usual = _UsualTags()


class _ColumnBlock:
    def __init__(self, plan: Plan, tags: bytes, count: int) -> None:
        self.plan = plan
        self.count = count
        self.numbers = _numbers(plan, tags)
        # A byte that is no message's tag is refused and needs no column.
        self.known_tags = np.array([tag not in plan.messages or tag in tags for tag in range(256)], np.uint8)
        # Each column begins at a multiple of 64 bytes, as Arrow recommends.
        stride = -(-count // _ALIGNED) * _ALIGNED
        bitmap = -(-count // (8 * _ALIGNED)) * _ALIGNED
        self.columns = np.zeros(len(plan.columns), COLUMN)
        # The slice of each column's bitmap; for columns of fixed width also the slice and dtype of the values.
        self.bitmaps: list[tuple[int, slice]] = []
        self.fixed: list[tuple[int, slice, np.dtype[np.integer[Any]]]] = []
        # The tags come first, then each message's status.
        place = 2 * stride
        self.tags, self.status = slice(0, count), slice(stride, stride + count)
        for number in sorted(self.numbers):
            column = plan.columns[number]
            self.bitmaps.append((number, slice(place, place + (count + 7) // 8)))
            self.columns["validity"][number] = place
            place += bitmap
            if column.is_fixed:
                self.columns["values"][number] = place // column.width
                values = slice(place, place + column.width * count)
                self.fixed.append((number, values, np.dtype(f"i{column.width}")))
                place += column.width * stride
        self.size = place
        self.spans = [number for number, column in enumerate(plan.columns) if column.has_spans]
        self.cells = [number for number, column in enumerate(plan.columns) if column.kind == "cells"]


_layout = lru_cache(64)(_ColumnBlock)


@lru_cache(256)
def _numbers(plan: Plan, tags: bytes) -> frozenset[int]:
    return frozenset(number for tag in tags if tag in plan.messages for number in plan.messages[tag].columns.values())


class _Arrays:
    def __init__(self, layout: _ColumnBlock, data: Bytes, offsets: Int64s, copies: bool) -> None:
        self.layout = layout
        self.data = data
        self.offsets = offsets
        self.block = zeros(layout.size, np.uint8)
        self.status = self.block[layout.status]
        self.known_tags = layout.known_tags.copy()
        self.columns = layout.columns.copy()
        self.spans = {number: ROOMS.take_spans(number) for number in layout.spans if number in layout.numbers}
        size = max(int(offsets[-1] - offsets[0]), 0)
        make = ROOMS.take_copies if copies else ROOMS.take_scratch
        self.cells: list[Copies | Scratch] = [
            make(index, layout.count, size if number in layout.numbers else 0)
            for index, number in enumerate(layout.cells)
        ]

    def walk(self, native: NativeWalk, facts: int, stops: bool) -> tuple[int, int, int]:
        """Walk from the first row on, growing memory as needed. Returns the last result of the native walk."""
        tags, row, result = self.block[self.layout.tags], 0, FULL
        while result == FULL:
            spans = tuple(self.spans.get(number, _NO_SPANS) for number in self.layout.spans)
            cells = tuple(cells.arrays for cells in self.cells)
            arrays = tags, self.status, self.known_tags, self.columns, self.block, spans, cells
            row, facts, result = native.walk(self.data, self.offsets, row, facts, stops, *arrays)
            if result == FULL:
                self._grow(int(self.offsets[row + 1] - self.offsets[row]))
        return row, facts, result

    def _grow(self, more: int) -> None:
        for number, spans in self.spans.items():
            if 3 * self.columns["count"][number] == len(spans):
                self.spans[number] = np.concatenate((spans, np.empty_like(spans)))
        for number, cells in zip(self.layout.cells, self.cells, strict=True):
            cells.grow(int(self.columns["count"][number]), int(self.columns["size"][number]), more)

    def seen(self) -> bytes:
        return np.flatnonzero(self.known_tags == SEEN).astype(np.uint8).tobytes()

    def located(self, seen: bytes, count: int, facts: int, stopped: bool) -> Located:
        layout = self.layout
        result = Located(count, self.block[:count], self.status[:count], facts, stopped, self.data, self.give_back)
        numbers = _numbers(layout.plan, seen)
        filled, sizes = self.columns["count"].tolist(), self.columns["size"].tolist()
        for number, bits in layout.bitmaps:
            if number in numbers:
                result.validity[number] = self.block[bits]
        for number, values, dtype in layout.fixed:
            if number in numbers:
                result.fixed[number] = self.block[values].view(dtype)
        if count < layout.count:
            result.validity = {number: bits[: (count + 7) // 8] for number, bits in result.validity.items()}
            result.fixed = {number: values[:count] for number, values in result.fixed.items()}
        for number, spans in self.spans.items():
            if number in numbers:
                result.spans[number] = Spans(spans[: 3 * filled[number]].reshape(-1, 3), sizes[number])
        for number, cells in zip(layout.cells, self.cells, strict=True):
            if number in numbers:
                cells.give(result, number, count, filled[number], sizes[number])
        return result

    def give_back(self) -> None:
        for number, spans in self.spans.items():
            ROOMS.keep_spans(number, spans)
        for index, cells in enumerate(self.cells):
            if isinstance(cells, Scratch):
                ROOMS.keep_scratch(index, cells)
        self.spans, self.cells = {}, []


def gathered(
    data: Bytes, starts: Int64s, lengths: Ints, size: int, index_type: IndexType
) -> tuple[pa.Buffer, pa.Buffer]:
    """Copy values together. Returns buffers of their offsets and of their bytes, `size` in all."""
    offsets, values = room(len(starts) + 1, index_type), room(size, np.uint8)
    _copying().gather(data, np.ascontiguousarray(starts), lengths.astype(np.uint32), offsets, values)
    return pa.py_buffer(offsets), pa.py_buffer(values)


def texts(data: Bytes, spans: Spans, count: int, index_type: IndexType) -> tuple[pa.Buffer, pa.Buffer]:
    offsets, values = room(count + 1, index_type), room(spans.size, np.uint8)
    _copying().gather_texts(data, spans.triples.ravel(), offsets, values)
    return pa.py_buffer(offsets), pa.py_buffer(values)


def lists(spans: Spans, count: int, index_type: IndexType) -> pa.Buffer:
    offsets = room(count + 1, index_type)
    _copying().spread_lists(spans.triples.ravel(), offsets)
    return pa.py_buffer(offsets)


def items(plan: Plan, number: int, located: Located) -> dict[str, Ints | Spans]:
    """Return the fields of the items of a column's lists."""
    if number in located.items:
        return located.items[number]
    native, spans, fields = native_walk(plan), located.spans[number], plan.columns[number].fields
    assert native is not None
    arrays: tuple[Ints, ...] = tuple(
        room(spans.size, np.dtype(f"i{field.width}")) if field.is_fixed else room(3 * spans.size, np.int64)
        for field in fields
    )
    sizes = native.items(number, located.data, spans.triples.ravel(), arrays)
    return {
        field.name: array if field.is_fixed else Spans(array.view(np.int64).reshape(-1, 3), size)
        for field, array, size in zip(fields, arrays, sizes, strict=True)
    }
