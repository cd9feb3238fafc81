"""Arrow arrays from a located batch, built from buffers, a whole column at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from logicalrep_runtime.columnar.locate import gathered, items, lists, texts
from logicalrep_runtime.columnar.located import REFUSED_BIT, Cells, CopiedCells, Ints, Located, Spans
from logicalrep_runtime.columnar.plan import Plan, PlanColumn
from logicalrep_runtime.columnar.texts import transcoded

Values = Literal["binary", "string"]

_SHARED = 1 << 17
"""The largest number of messages for which arrays of nulls and of ascending offsets are cached."""

_SIGNED = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}
_UNSIGNED = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}
# Spark has no unsigned integers: the next wider type holds them, and a 64-bit integer keeps its bits.
_WIDENED = {1: pa.int16(), 2: pa.int32(), 4: pa.int64(), 8: pa.int64()}


@dataclass(frozen=True, slots=True)
class BatchForm:
    values: Values
    large: bool
    """Whether offsets have 64 bits, as more than 2 GiB need."""
    for_spark: bool
    marks: bool
    """Whether a refused row stays in the batch, with two more columns for its error and its bytes."""


def type_of(column: PlanColumn, style: BatchForm) -> pa.DataType:
    if column.kind == "char":
        return pa.string()
    if column.kind == "bool":
        return pa.bool_()
    if column.kind == "text":
        return pa.large_string() if style.large else pa.string()
    if column.kind == "bytes":
        return pa.large_binary() if style.large else pa.binary()
    if column.kind == "int":
        return _integer_type(column, style)
    return (pa.large_list if style.large else pa.list_)(pa.field("item", _item_type(column, style), nullable=False))


def _item_type(column: PlanColumn, style: BatchForm) -> pa.DataType:
    if column.kind == "ints":
        return _integer_type(column, style)
    if column.kind == "items":
        return pa.struct([pa.field(field.name, type_of(field, style), nullable=False) for field in column.fields])
    return pa.struct([pa.field("kind", pa.int8(), nullable=False), pa.field("value", _value_type(style))])


def _value_type(style: BatchForm) -> pa.DataType:
    if style.values == "string":
        return pa.large_string() if style.large else pa.string()
    return pa.large_binary() if style.large else pa.binary()


def _integer_type(column: PlanColumn, style: BatchForm) -> pa.DataType:
    if column.arrow:
        return pa.timestamp("us", "UTC")
    if column.signed:
        return _SIGNED[column.width]
    return (_WIDENED if style.for_spark else _UNSIGNED)[column.width]


@lru_cache(64)
def schema_of(plan: Plan, style: BatchForm) -> pa.Schema:
    fields = [pa.field("tag", pa.string(), nullable=style.marks)]
    fields += [pa.field(column.name, type_of(column, style)) for column in map(plan.columns.__getitem__, plan.order)]
    if style.marks:
        fields.append(pa.field("error", pa.string()))
        fields.append(pa.field("data", pa.large_binary() if style.large else pa.binary()))
    return pa.schema(fields)


class ArrayBuilder:
    def __init__(self, plan: Plan, style: BatchForm, located: Located, encoding: str) -> None:
        self.plan = plan
        self.style = style
        self.located = located
        self.encoding = encoding
        self.index_type = np.int64 if style.large else np.int32

    def arrays(self) -> list[pa.Array]:
        located, count = self.located, self.located.count
        taken = None
        if self.style.marks and (located.status & REFUSED_BIT).any():
            taken = pa.py_buffer(np.packbits(located.status == 0, bitorder="little"))
        arrays = list(_null_columns(count, self.plan, self.style))
        arrays[0] = _characters(located.tags, taken)
        for place, number, column, type_, make in _recipe(self.plan, self.style, tuple(located.validity)):
            arrays[place] = make(self, column, number, type_, pa.py_buffer(located.validity[number]))
        return arrays

    def _char(self, column: PlanColumn, number: int, type_: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        return _characters(self.located.fixed[number], validity)

    def _number(self, column: PlanColumn, number: int, type_: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        return self._fixed(column, self.located.fixed[number], type_, validity)

    def _rows(self, column: PlanColumn, number: int, type_: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        copied = self.located.copied.get(number) or self._copy_cells(self.located.cells[number])
        return _array_of(type_, self.located.count, [validity, copied.offsets], self._cells(column, copied, type_))

    def _list(self, column: PlanColumn, number: int, type_: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        spans, count = self.located.spans[number], self.located.count
        offsets = lists(spans, count, self.index_type)
        if column.kind == "ints":
            child = self._integers(column, spans, type_.value_type)
        else:
            child = self._items(column, number, spans.size, type_.value_type)
        return _array_of(type_, count, [validity, offsets], child)

    def _text(self, column: PlanColumn, number: int, type_: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        count = self.located.count
        return _array_of(type_, count, [validity, *self._bytes(column, self.located.spans[number], count)])

    def _fixed(self, column: PlanColumn, values: Ints, type_: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        if column.kind == "bool":
            bits = np.packbits(values.astype(bool), bitorder="little")
            return pa.Array.from_buffers(type_, len(values), [validity, pa.py_buffer(bits)])
        if (wider := _widened(column, type_)) is not None:
            values = values.view(f"u{column.width}").astype(wider)
        return pa.Array.from_buffers(type_, len(values), [validity, pa.py_buffer(values)])

    def _bytes(self, column: PlanColumn, spans: Spans, count: int) -> tuple[pa.Buffer, pa.Buffer]:
        """Return buffers of the offsets of `count` rows and of their bytes. Texts become UTF-8."""
        offsets, values = texts(self.located.data, spans, count, self.index_type)
        if column.kind == "text" and self.encoding != "utf-8":
            return transcoded(np.frombuffer(offsets, self.index_type), values, self.encoding)
        return offsets, values

    def _integers(self, column: PlanColumn, spans: Spans, type_: pa.DataType) -> pa.Array:
        size = spans.size * column.width
        _, values = gathered(self.located.data, spans.starts, spans.lengths * column.width, size, self.index_type)
        big = np.frombuffer(values, f">i{column.width}").astype(f"i{column.width}")
        big += column.epoch
        return self._fixed(column, big, type_, None)

    def _items(self, column: PlanColumn, number: int, count: int, type_: pa.DataType) -> pa.Array:
        values_by_name = items(self.plan, number, self.located)
        children = []
        for field, inner in zip(column.fields, type_, strict=True):
            values = values_by_name[field.name]
            if isinstance(values, Spans):
                children.append(_array_of(inner.type, count, [None, *self._bytes(field, values, count)]))
            elif field.kind == "char":
                children.append(_characters(values, None))
            else:
                children.append(self._fixed(field, values, inner.type, None))
        return pa.Array.from_buffers(type_, count, [None], children=children)

    def _copy_cells(self, cells: Cells) -> CopiedCells:
        starts, values = gathered(self.located.data, cells.starts, cells.lengths, cells.size, self.index_type)
        offsets = pa.py_buffer(cells.offsets.astype(self.index_type))
        return CopiedCells(offsets, pa.py_buffer(cells.kinds.copy()), starts, values)

    def _cells(self, column: PlanColumn, copied: CopiedCells, list_type: pa.DataType) -> pa.Array:
        type_ = list_type.value_type
        kinds = np.frombuffer(copied.kinds, np.uint8)
        # No kind is 0.
        valued = kinds == (column.valued or b"\0")[0]
        for kind in column.valued[1:]:
            valued |= kinds == kind
        validity = pa.py_buffer(np.packbits(valued, bitorder="little"))
        kind_array = pa.Array.from_buffers(pa.int8(), len(kinds), [None, copied.kinds])
        value_array = pa.Array.from_buffers(type_[1].type, len(kinds), [validity, copied.starts, copied.values])
        return pa.Array.from_buffers(type_, len(kinds), [None], children=[kind_array, value_array])


def _array_of(
    type_: pa.DataType, count: int, buffers: list[pa.Buffer | None], child: pa.Array | None = None
) -> pa.Array:
    return pa.Array.from_buffers(type_, count, buffers, children=None if child is None else [child])


@lru_cache(256)
def _widened(column: PlanColumn, type_: pa.DataType) -> str | None:
    """Return the dtype of a column whose integers are wider than in the message; None for other columns."""
    if pa.types.is_timestamp(type_) or type_.bit_width == 8 * column.width:
        return None
    return f"i{type_.bit_width // 8}"


def _characters(values: Ints, validity: pa.Buffer | None) -> pa.Array:
    count = len(values)
    return pa.Array.from_buffers(pa.string(), count, [validity, _counting(count), pa.py_buffer(values)])


_Make = Callable[[ArrayBuilder, PlanColumn, int, pa.DataType, pa.Buffer | None], pa.Array]
_MAKES: dict[str, _Make] = {
    "char": ArrayBuilder._char,
    "bool": ArrayBuilder._number,
    "int": ArrayBuilder._number,
    "text": ArrayBuilder._text,
    "bytes": ArrayBuilder._text,
    "ints": ArrayBuilder._list,
    "items": ArrayBuilder._list,
    "cells": ArrayBuilder._rows,
}


@lru_cache(64)
def _recipe(
    plan: Plan, style: BatchForm, numbers: tuple[int, ...]
) -> list[tuple[int, int, PlanColumn, pa.DataType, _Make]]:
    schema = schema_of(plan, style)
    return [
        (place, number, plan.columns[number], schema.field(place).type, _MAKES[plan.columns[number].kind])
        for place, number in enumerate(plan.order, 1)
        if number in numbers
    ]


def _shared(make: Callable[..., Any]) -> Callable[..., Any]:
    cached = lru_cache(16)(make)

    def get(count: int, *arguments: Any) -> Any:
        return (cached if count <= _SHARED else make)(count, *arguments)

    return get


@_shared
def _counting(count: int) -> Any:
    return pa.py_buffer(np.arange(count + 1, dtype=np.int32))


@_shared
def _null_columns(count: int, plan: Plan, style: BatchForm) -> list[pa.Array]:
    fields = list(schema_of(plan, style))[1 : len(plan.order) + 1]
    return [pa.nulls(0), *(pa.nulls(count, field.type) for field in fields)]
