"""The loading of all relations' rows of a batch at once: single calls would cost as much as the values.

Without `logicalrep-native` the types' own loaders load all values, in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.table.columns import MOST_TEXT, LoadedColumns, LocatedValues, PresentRows, RowReader, Rows
from logicalrep.arrow.table.native_columns import COLUMN, NativeColumn
from logicalrep.transactions.errors import TooLargeError
from logicalrep.transactions.tags import BINARY, TEXT
from logicalrep.values.native_loaders import NativeLoader
from logicalrep_runtime.columnar.located import PADDING, Bytes, Int64s, Records, padded_room, room
from logicalrep_runtime.native import native_module

__all__ = ["RelationRows", "load"]

RelationRows = tuple[RowReader, PresentRows]

_ALIGNED = 64


def load(data: Bytes, relations: Sequence[RelationRows]) -> list[Rows]:
    """Return each relation's rows as typed columns. Raises TooLargeError for a column of more than 2 GiB of text."""
    native = native_module()
    nonempty = [] if native is None else [relation for relation in relations if len(relation[1].rows)]
    loaded = iter(loaded_natively(native, data, nonempty) if nonempty else ())
    return [
        reader.rows(present, next(loaded) if nonempty and len(present.rows) else left_to_types(reader, present))
        for reader, present in relations
    ]


def left_to_types(reader: RowReader, present: PresentRows) -> LoadedColumns:
    """Leave all values to the loaders of the columns' types."""
    arrays = [pa.nulls(present.count, type_) for type_ in reader.types]
    if not len(present.rows):
        return LoadedColumns(arrays, lambda index: pa.py_buffer(bytes(present.count)), {})
    states = np.zeros((len(reader.columns), present.count), np.uint8)
    for index, in_key in enumerate(reader.in_key.tolist()):
        of_whole = present.more.get(index, (present.whole_rows, present.whole_first))
        rows, first = (present.rows, present.first) if in_key else of_whole
        states[index, rows] = present.cells.kinds[first + index]
    is_sent = (states == TEXT) | (states == BINARY)
    leftover = {index: np.flatnonzero(is_sent[index]) for index in np.flatnonzero(is_sent.any(axis=1)).tolist()}
    return LoadedColumns(arrays, lambda index: pa.py_buffer(states[index]), leftover)


def loaded_natively(native: Any, data: Bytes, relations: Sequence[RelationRows]) -> list[LoadedColumns]:
    sides = list({id(present.cells): present.cells for _, present in relations}.values())
    columns, rows, first = _columns(relations, sides)
    row_cells = _joined(first)
    old, new = ((side.kinds, side.starts, side.lengths) for side in (sides[0], sides[-1]))
    native.measure_rows(columns, old, new, row_cells)
    totals = columns["total"]
    if totals.max(initial=0) > MOST_TEXT:
        raise TooLargeError("a column of more than 2 GiB needs smaller batches")
    columns["texts"] = PADDING + np.cumsum(totals) - totals
    memory = _Memory.of(columns, int(totals.sum()))
    left_columns, left_rows = room(2 * int(columns["having"].sum()), np.int64).reshape(2, -1)
    count = native.load_rows(
        data, columns, old, new, _joined(rows), row_cells, memory.bytes, memory.characters, left_columns, left_rows
    )
    of_columns = _by_column(left_columns[:count], left_rows[:count])
    numbered = enumerate(map(NativeColumn._make, columns.tolist()))
    return [_loaded(memory, reader, list(islice(numbered, len(reader.types))), of_columns) for reader, _ in relations]


def _columns(
    relations: Sequence[RelationRows], sides: Sequence[LocatedValues]
) -> tuple[Records, list[Int64s], list[Int64s]]:
    """Return all relations' columns, without offsets in the output; and the rows that have each column."""
    columns = np.concatenate([reader.native_columns for reader, _ in relations]).view(COLUMN).ravel()
    rows: list[Int64s] = []
    first: list[Int64s] = []
    count = start = 0

    def enter(records: Records, selected: int | slice | NDArray[np.bool_], having: tuple[Int64s, Int64s]) -> None:
        nonlocal count
        records["first"][selected], records["having"][selected] = count, len(having[0])
        rows.append(having[0])
        first.append(having[1])
        count += len(having[0])

    for reader, present in relations:
        part = columns[start : start + len(reader.columns)]
        start += len(part)
        part["side"], part["changes"] = sides[0] is not present.cells, present.count
        if present.whole_rows is present.rows:
            enter(part, slice(None), (present.rows, present.first))
            continue
        enter(part, reader.in_key, (present.rows, present.first))
        enter(part, ~reader.in_key, (present.whole_rows, present.whole_first))
        for index, having in present.more.items():
            enter(part, index, having)
    return columns, rows, first


def _joined(arrays: Sequence[Int64s]) -> Int64s:
    return np.concatenate(arrays, out=room(sum(map(len, arrays)), np.int64))


@dataclass(frozen=True, slots=True)
class _Memory:
    block: pa.Buffer
    """The states, the validity, then values or offsets, each at a multiple of 64 bytes; zeros at the front."""
    bytes: Bytes
    zeros: pa.Buffer
    characters: Bytes
    texts: pa.Buffer

    @classmethod
    def of(cls, columns: Records, text_size: int) -> _Memory:
        counts, widths, is_absent = columns["changes"], columns["width"], columns["having"] == 0
        strides = -(-counts // (8 * _ALIGNED)) * 8 * _ALIGNED
        sizes = np.stack([strides, strides // 8, -(-widths * (counts + 1) // _ALIGNED) * _ALIGNED])
        nothing = int(sizes[:, is_absent].max(initial=0))
        sizes[:, is_absent] = 0
        offsets = nothing + (np.cumsum(sizes) - sizes.ravel()).reshape(3, -1)
        columns["states"], columns["validity"] = np.where(is_absent, 0, offsets[0]), offsets[1] // 4
        columns["values"] = offsets[2] // np.maximum(widths, 1)
        block = pa.allocate_buffer(nothing + int(sizes.sum()))
        whole = np.frombuffer(block, np.uint8)
        whole[:nothing].fill(0)
        characters = padded_room(text_size)
        return cls(block, whole, block.slice(0, nothing), characters, pa.py_buffer(characters))

    def array(self, column: NativeColumn, type_: pa.DataType) -> pa.Array:
        if column.code == NativeLoader.NONE:
            return pa.nulls(column.changes, type_)
        if not column.having:
            buffers = [self.zeros] * (3 if column.code >= NativeLoader.STRING else 2)
        else:
            is_full = column.valued == column.changes
            buffers = [None if is_full else self.block.slice(4 * column.validity, -(-column.changes // 8))]
            start = column.width * column.values
            if column.code >= NativeLoader.STRING:
                buffers.append(self.block.slice(start, column.width * (column.changes + 1)))
                buffers.append(self.texts.slice(column.texts, column.total))
            elif column.code == NativeLoader.BOOLEAN:
                values = self.bytes[start : start + column.changes]
                buffers.append(pa.py_buffer(np.packbits(values, bitorder="little")))
            else:
                buffers.append(self.block.slice(start, column.width * column.changes))
        return pa.Array.from_buffers(type_, column.changes, buffers, column.changes - column.valued)


def _loaded(
    memory: _Memory, reader: RowReader, columns: Sequence[tuple[int, NativeColumn]], leftover: dict[int, Int64s]
) -> LoadedColumns:
    """Return the columns of one relation. The states are built on demand, as few callers need them."""
    arrays = [memory.array(column, type_) for (_, column), type_ in zip(columns, reader.types, strict=True)]
    rest = {index: leftover[number] for index, (number, _) in enumerate(columns) if number in leftover}
    return LoadedColumns(
        arrays, lambda index: memory.block.slice(columns[index][1].states, columns[index][1].changes), rest
    )


def _by_column(columns: Int64s, rows: Int64s) -> dict[int, Int64s]:
    return {column: np.sort(rows[columns == column]) for column in np.unique(columns).tolist()}
