"""The columns of one relation's rows, by native loops; types' own loaders read the values that the loops leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.loops.finding import RowCells, find_rows
from logicalrep.arrow.table import native_columns
from logicalrep.transactions.errors import TooLargeError
from logicalrep.transactions.tags import NULL
from logicalrep.values import Column, arrow_array_or_text
from logicalrep.values.native_loaders import NativeLoader
from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints, room

__all__ = ["LoadedColumns", "LocatedRows", "LocatedValues", "PresentRows", "RowReader", "Rows", "has"]


MOST_TEXT = 2**31 - 1
"""The most bytes of a column's texts: Arrow's offsets have 32 bits."""

_NO_KINDS = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class LocatedValues:
    data: Bytes
    kinds: Bytes
    starts: Int64s
    lengths: NDArray[np.uint32]

    def value(self, cell: int) -> bytes:
        start = int(self.starts[cell])
        return self.data[start : start + int(self.lengths[cell])].tobytes()


@dataclass(frozen=True, slots=True)
class LocatedRows:
    cells: LocatedValues
    offsets: Int64s
    """The index of each message's first value, and last the number of values."""
    validity: Bytes
    """The messages that have such a row, in bits."""


@dataclass(frozen=True, slots=True)
class PresentRows:
    """The messages that have a row, in order, and the positions of their values."""

    cells: LocatedValues
    count: int
    rows: Int64s
    first: Int64s
    whole_rows: Int64s
    """`rows` without key rows, which have the key's columns and any others that were sent."""
    whole_first: Int64s
    more: dict[int, tuple[Int64s, Int64s]] = field(default_factory=dict)
    """The rows with a value, and its first value, by column outside of the key, if key rows have such values."""


@dataclass(frozen=True, slots=True)
class LoadedColumns:
    arrays: Sequence[pa.Array]
    states: Callable[[int], pa.Buffer]
    leftover: dict[int, Int64s]


@dataclass(frozen=True)
class Rows:
    values: pa.RecordBatch
    """Each column of its Arrow type; null where there is no value, and where the type cannot hold it."""
    unfit: dict[str, dict[int, str]]
    """The text of the values that the Arrow type cannot hold, by column and row."""
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


class RowReader:
    def __init__(self, columns: Sequence[Column], in_key: Sequence[bool], *, for_spark: bool) -> None:
        self.columns = columns
        self.in_key = np.array(in_key, bool)
        self.for_spark = for_spark
        names = [column.name for column in columns]
        self.types = [column.type.arrow_type(for_spark=for_spark) for column in columns]
        self.schema = pa.schema(list(zip(names, self.types, strict=True)))
        codes = [
            _code(column, arrow_type, for_spark=for_spark)
            for column, arrow_type in zip(columns, self.types, strict=True)
        ]
        self.native_columns = np.zeros((len(columns), len(native_columns.NativeColumn._fields)), np.int64)
        """Each column's NativeColumn, without the fields that depend on the rows."""
        for index, (fields, (code, *decimal)) in enumerate(zip(self.native_columns, codes, strict=True)):
            fields[: native_columns.FIXED] = code, native_columns.WIDTHS[code], *decimal, index

    def find(self, rows: Int64s, walk: LocatedRows, kinds: Ints | None) -> tuple[PresentRows, int | None]:
        """Return the rows that messages have, and a message whose row has a wrong number of values, or None.

        `kinds` is each row's kind.
        """
        count = len(rows)
        present = whole = _row_cells(count)
        if kinds is not None:
            whole = _row_cells(count)
        present_count, whole_count, wrong, has_more = find_rows(
            rows,
            walk.offsets,
            walk.validity,
            walk.cells.kinds,
            self.in_key.view(np.uint8),
            _NO_KINDS if kinds is None else kinds.view(np.uint8),
            present,
            whole,
        )
        having = present[0][:present_count], present[1][:present_count]
        having_whole = having if kinds is None else (whole[0][:whole_count], whole[1][:whole_count])
        more = self._more(walk.cells, *having, having_whole[0]) if has_more else {}
        row = None if wrong < 0 else int(rows[wrong])
        return PresentRows(walk.cells, count, *having, *having_whole, more), row

    def _more(
        self, cells: LocatedValues, rows: Int64s, first: Int64s, whole: Int64s
    ) -> dict[int, tuple[Int64s, Int64s]]:
        is_whole = np.isin(rows, whole)
        more = {}
        for index in np.flatnonzero(~self.in_key).tolist():
            has_it = is_whole | (cells.kinds[first + index] != NULL)
            if not np.array_equal(has_it, is_whole):
                more[index] = rows[has_it], first[has_it]
        return more

    def find_none(self, count: int) -> PresentRows:
        none = np.empty(0, np.int64)
        return PresentRows(LocatedValues(_NO_KINDS, _NO_KINDS, none, np.empty(0, np.uint32)), count, *(none,) * 4)

    def rows(self, present: PresentRows, loaded: LoadedColumns) -> Rows:
        unfit: dict[str, dict[int, str]] = {}
        arrays = list(loaded.arrays)
        for index, leftover_rows in loaded.leftover.items():
            cells = present.first[np.searchsorted(present.rows, leftover_rows)] + index
            arrays[index], texts = self._with_leftover(arrays[index], leftover_rows, present.cells, cells, index)
            if texts:
                unfit[self.columns[index].name] = texts
        if not arrays:
            empty = pa.array([{}] * present.count, pa.struct([]))
            return Rows(pa.RecordBatch.from_struct_array(empty), unfit, loaded.states)
        return Rows(pa.RecordBatch.from_arrays(arrays, schema=self.schema), unfit, loaded.states)

    def _with_leftover(
        self, array: pa.Array, rows: Int64s, values: LocatedValues, cells: Int64s, index: int
    ) -> tuple[pa.Array, dict[int, str]]:
        if values.lengths[cells].sum(dtype=np.int64) > MOST_TEXT:
            raise TooLargeError("a column of more than 2 GiB needs smaller batches")
        column = self.columns[index]
        read: list[object] = []
        unfit: dict[int, str] = {}
        for row, cell in zip(rows.tolist(), cells.tolist(), strict=True):
            value, text = column.load_or_text(int(values.kinds[cell]), values.value(cell))
            read.append(value)
            if text is not None:
                unfit[row] = text
        loaded, refused = arrow_array_or_text(column, read, for_spark=self.for_spark)
        unfit |= {int(rows[index]): text for index, text in refused.items()}
        if len(rows) == len(array):
            return loaded, unfit
        order = np.arange(len(array))
        order[rows] = len(array) + np.arange(len(rows))
        return pa.concat_arrays([array, loaded]).take(pa.array(order)), dict(sorted(unfit.items()))


def _row_cells(count: int) -> RowCells:
    rows, cells = room(2 * count, np.int64).reshape(2, count)
    return rows, cells


def has(validity: Bytes, rows: Int64s) -> NDArray[np.bool_]:
    return (validity[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(bool)  # type: ignore[no-any-return]


def _code(column: Column, arrow_type: pa.DataType, *, for_spark: bool) -> tuple[NativeLoader, int, int]:
    native = (column.type.spark if for_spark else column.type.arrow).native
    if native is NativeLoader.STRING and column.encoding != "utf-8":
        return NativeLoader.NONE, 0, 0
    return native, *((arrow_type.precision, arrow_type.scale) if native is NativeLoader.DECIMAL else (0, 0))
