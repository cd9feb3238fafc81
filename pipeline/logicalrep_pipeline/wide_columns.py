"""The columns of a relation's old or new rows, read by compiled loaders where there are any for their types.

Which loader that is follows from what `values` says of the type, by the function that loads its text, so a domain over
a type is read as the type is. What a compiled loader leaves, and every value of other types, goes through the type's
own loaders; so the result is the same with and without numba.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.columnar import default_backend
from logicalrep_pipeline.values import Column, arrow_array_or_text
from logicalrep_pipeline.values import column_type as type_of

__all__ = ["Cells", "Reader", "Rows"]

_TEXT = ord("t")
_BINARY = ord("b")

Ints = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of a batch's rows, as a walk found them."""

    data: Ints
    kinds: Ints
    starts: Ints
    lengths: Ints

    def value(self, cell: int) -> bytes:
        """The bytes of one."""
        start = int(self.starts[cell])
        return self.data[start : start + int(self.lengths[cell])].tobytes()


@dataclass(frozen=True)
class Rows:
    """Old or new rows as columns."""

    values: pa.RecordBatch
    """Each column of its Arrow type; null where there is no value, and where the type cannot hold it."""
    kept: dict[str, dict[int, str]]
    """By column and row, the text of the values that the Arrow type cannot hold."""
    _states: Callable[[int], pa.Buffer] = field(repr=False)

    @cached_property
    def states(self) -> pa.RecordBatch:
        """int8 for each column: the kind of each row's value, `ord("n")` for example; 0 where the row has none."""
        count = self.values.num_rows
        if not self.values.num_columns:
            return self.values
        arrays = [
            pa.Array.from_buffers(pa.int8(), count, [None, self._states(index)], 0)
            for index in range(self.values.num_columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=self.values.schema.names)


class Reader:
    """Reads the rows of one relation."""

    def __init__(self, columns: Sequence[Column], in_key: Sequence[bool], *, for_spark: bool) -> None:
        self.columns = columns
        self.in_key = np.array(in_key, bool)
        self.for_spark = for_spark
        names = [column.name for column in columns]
        self.types = [column.type.arrow_type(for_spark=for_spark) for column in columns]
        self.schema = pa.schema(list(zip(names, self.types, strict=True)))
        self.kernels: Any = None
        if default_backend() == "numba":
            from logicalrep_pipeline import wide_kernels

            self.kernels = wide_kernels
            plan = [_code(wide_kernels, column, type_) for column, type_ in zip(columns, self.types, strict=True)]
            self.codes = [code for code, _, _ in plan]
            self.widths = [_WIDTHS.get(_name_of(wide_kernels, code), 8) for code in self.codes]
            self.table = np.zeros((len(columns), wide_kernels.ENTRIES), np.int64)
            for line, entries, is_in_key in zip(self.table, plan, in_key, strict=True):
                line[wide_kernels.CODE], line[wide_kernels.PRECISION], line[wide_kernels.SCALE] = entries
                line[wide_kernels.IN_KEY] = is_in_key

    def absent(self, count: int) -> Rows:
        """So many rows that are not there."""
        return self._rows(
            [pa.nulls(count, type_) for type_ in self.types], {}, lambda _: pa.py_buffer(bytes(count)), count
        )

    def read(self, cells: Cells, first: Ints, is_key: NDArray[np.bool_]) -> Rows:
        """Rows as columns.

        `first` is the index of each row's first value, negative where there is no such row; `is_key` says which rows
        have the key's columns only.
        """
        count = len(first)
        load = self._load if self.kernels is not None else self._leave_all
        arrays, states, hard = load(cells, first, is_key)
        kept: dict[str, dict[int, str]] = {}
        if len(hard):
            rows, of = np.divmod(hard, len(self.columns))
            for index in np.unique(of).tolist():
                some = rows[of == index]
                arrays[index], texts = self._with_hard(arrays[index], some, cells, first[some] + index, index)
                if texts:
                    kept[self.columns[index].name] = texts
        return self._rows(arrays, kept, states, count)

    def _rows(
        self, arrays: list[pa.Array], kept: dict[str, dict[int, str]], states: Callable[[int], pa.Buffer], count: int
    ) -> Rows:
        if not arrays:
            return Rows(pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([]))), kept, states)
        return Rows(pa.RecordBatch.from_arrays(arrays, schema=self.schema), kept, states)

    def _with_hard(
        self, array: pa.Array, rows: Ints, cells: Cells, places: Ints, index: int
    ) -> tuple[pa.Array, dict[int, str]]:
        """The array with the values of those rows, each through the loaders of its type."""
        column = self.columns[index]
        values, kept = [], {}
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            value, text = column.load_or_text(int(cells.kinds[place]), cells.value(place))
            values.append(value)
            if text is not None:
                kept[row] = text
        loaded, refused = arrow_array_or_text(column, values, for_spark=self.for_spark)
        kept |= {int(rows[place]): text for place, text in refused.items()}
        if len(rows) == len(array):
            return loaded, kept
        order = np.arange(len(array))
        order[rows] = len(array) + np.arange(len(rows))
        return pa.concat_arrays([array, loaded]).take(pa.array(order)), dict(sorted(kept.items()))

    def _leave_all(
        self, cells: Cells, first: Ints, is_key: NDArray[np.bool_]
    ) -> tuple[list[pa.Array], Callable[[int], pa.Buffer], Ints]:
        """As `_load`, where nothing is compiled: all values are left."""
        there = (first >= 0)[:, None] & (self.in_key | ~is_key[:, None])
        states = np.zeros(there.shape, np.int8)
        states[there] = cells.kinds[(first[:, None] + np.arange(len(self.columns)))[there]]
        arrays = [pa.nulls(len(first), type_) for type_ in self.types]
        columns = np.ascontiguousarray(states.T)
        left = np.flatnonzero((states == _TEXT) | (states == _BINARY))
        return arrays, lambda index: pa.py_buffer(columns[index]), left

    def _load(
        self, cells: Cells, first: Ints, is_key: NDArray[np.bool_]
    ) -> tuple[list[pa.Array], Callable[[int], pa.Buffer], Ints]:
        """The values that the compiled loaders read, the states, and which are left: row * columns + column."""
        kernels, count, width = self.kernels, len(first), len(self.columns)
        # All columns in one block: the states first, then values or offsets, each at a multiple of 64 bytes.
        stride = -(-count // 64) * 64
        sizes = [-(-one * (count + 1) // 64) * 64 for one in self.widths]
        places = [width * stride]
        for size in sizes:
            places.append(places[-1] + size)
        block = pa.allocate_buffer(places.pop())
        table = self.table.copy()
        table[:, kernels.STATES] = block.address + stride * np.arange(width)
        table[:, kernels.VALUES] = places
        hard = np.frombuffer(pa.allocate_buffer(8 * count * width), np.int64)
        where = _address(cells.kinds), _address(cells.starts), _address(cells.lengths)
        whole = np.frombuffer(block, np.uint8)
        found = kernels.load_rows(
            cells.data, *where, first, is_key, _address(table), width, block.address,
            whole.view(np.float32), whole.view(np.float64), _POWERS4, _POWERS8, hard,
        )  # fmt: skip
        totals, valued = table[:, kernels.TOTAL].copy(), table[:, kernels.VALUED].tolist()
        texts, ends = None, np.cumsum(totals).tolist()
        if width and ends[-1]:
            if totals.max() > 2**31 - 1:
                raise ValueError("a column of more than 2 GiB takes smaller batches")
            texts = pa.allocate_buffer(ends[-1])
            table[:, kernels.TOTAL] = ends - totals
            target = np.frombuffer(texts, np.uint8)
            kernels.copy_rows(cells.data, *where, first, _address(table), width, block.address, target)
        valid = None
        if any(some < count for some in valued):
            kinds = whole[: width * stride].reshape(width, stride)
            valid = pa.py_buffer(np.packbits((kinds == _TEXT) | (kinds == _BINARY), axis=1, bitorder="little"))
        arrays = []
        for index, (code, place, one) in enumerate(zip(self.codes, places, self.widths, strict=True)):
            if code == kernels.OTHER:
                arrays.append(pa.nulls(count, self.types[index]))
                continue
            buffers = [None if valid is None else valid.slice(index * stride // 8, stride // 8)]
            if code >= kernels.STRING:
                size = int(totals[index])
                buffers += [
                    block.slice(place, 4 * count + 4),
                    pa.py_buffer(b"") if texts is None else texts.slice(ends[index] - size, size),
                ]
            elif code == kernels.BOOLEAN:
                buffers.append(pa.py_buffer(np.packbits(whole[place : place + count], bitorder="little")))
            else:
                buffers.append(block.slice(place, one * count))
            arrays.append(pa.Array.from_buffers(self.types[index], count, buffers, count - valued[index]))
        return arrays, lambda index: block.slice(index * stride, count), hard[:found]


def _address(array: Ints) -> int:
    return pa.py_buffer(array).address  # type: ignore[no-any-return]


_POWERS4 = np.float32(10) ** np.arange(11, dtype=np.float32)
_POWERS8 = 10.0 ** np.arange(23)
"""The powers of ten that are exact in each precision."""

_WIDTHS = {
    "OTHER": 0,
    "BOOLEAN": 1,
    "INT16": 2,
    "INT32": 4,
    "DATE": 4,
    "FLOAT32": 4,
    "DECIMAL": 16,
    "STRING": 4,
    "UUID": 4,
    "NUMBER": 4,
    "BYTES": 4,
}
"""The bytes of a value, or of an offset, in its array; of all others 8."""


def _name_of(kernels: Any, code: int) -> str:
    return next((name for name in _WIDTHS if getattr(kernels, name) == code), "")


_KNOWN = {
    16: ("BOOLEAN", pa.bool_()),
    17: ("BYTES", pa.binary()),
    20: ("INT64", pa.int64()),
    21: ("INT16", pa.int16()),
    23: ("INT32", pa.int32()),
    25: ("STRING", pa.string()),
    26: ("OID", pa.int64()),
    28: ("OID", pa.int64()),
    29: ("OID", pa.int64()),
    700: ("FLOAT32", pa.float32()),
    701: ("FLOAT64", pa.float64()),
    1082: ("DATE", pa.date32()),
    1114: ("TIMESTAMP", pa.timestamp("us")),
    1184: ("TIMESTAMPTZ", pa.timestamp("us", "UTC")),
    1700: ("NUMBER", pa.string()),
    2950: ("UUID", pa.string()),
}
_BY_LOADER = {type_of(oid).from_text: known for oid, known in _KNOWN.items()}
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)").fullmatch


def _code(kernels: Any, column: Column, arrow_type: pa.DataType) -> tuple[int, int, int]:
    """What the kernels are to make of a column; a decimal's precision and scale."""
    name, made = _BY_LOADER.get(column.type.from_text, ("OTHER", None))
    numeric = _NUMERIC(column.type.name)
    if numeric is not None and pa.types.is_decimal128(arrow_type) and int(numeric[2]) <= int(numeric[1]):
        return kernels.DECIMAL, int(numeric[1]), int(numeric[2])
    if made != arrow_type or (name == "STRING" and column.encoding != "utf-8"):
        name = "OTHER"
    return getattr(kernels, name), 0, 0
