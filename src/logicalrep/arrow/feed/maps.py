"""Maps from column names to values for the old or new rows of many messages, and the columns that were not sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.feed.texts import TextError, Texts, refuse_texts
from logicalrep.arrow.loops.maps import Columns, Entries, Side, Sizes, fill_maps
from logicalrep.arrow.loops.names import are_utf8, copy_names, find_keys, find_names
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import BINARY
from logicalrep_protocol.columnar import LocatedBatch
from logicalrep_runtime.columnar.located import room

__all__ = ["Names", "RowMaps", "TableNames", "WantedRows"]

_NO_SIDE = Side(
    np.empty(0, np.int64),
    np.empty(0, np.uint8),
    np.empty(0, np.uint8),
    np.empty(0, np.int64),
    np.empty(0, np.uint32),
)


class Names:
    def __init__(self, texts: Sequence[str]) -> None:
        self.ends = np.cumsum([0, *(len(text.encode()) for text in texts)], dtype=np.int32)
        self.characters = np.frombuffer("".join(texts).encode(), np.uint8)

    def take(self, numbers: NDArray[np.int32], type_: pa.DataType) -> pa.Array:
        count, ends = len(numbers), room(len(numbers) + 1, np.int32)
        copies = room(find_names(numbers, self.ends, ends), np.uint8)
        copy_names(numbers, self.characters, self.ends, copies, ends)
        return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(ends), pa.py_buffer(copies)], 0)


class TableNames:
    def __init__(self, descriptions: Sequence[TableDescription]) -> None:
        self.descriptions = tuple(descriptions)
        self.names = Names([name for relation in descriptions for name in relation.names])
        widths = np.array([len(relation.columns) for relation in descriptions], np.int64)
        first = np.cumsum(widths) - widths
        is_key = np.array([column.key for relation in descriptions for column in relation.columns], np.uint8)
        self.columns = Columns(first, widths, is_key, self.names.characters, self.names.ends)
        self.name_sizes = (self.names.ends[first + widths] - self.names.ends[first]).astype(np.int64)
        keys = [len(relation.key) for relation in descriptions]
        self._key_columns = np.flatnonzero(is_key).astype(np.int32)
        self._key_ends = np.cumsum([0, *keys], dtype=np.int64)
        self._longest_key = max(keys, default=0)

    def keys(self, tables: NDArray[np.int32], type_: pa.ListType) -> pa.Array:
        columns, ends = room(len(tables) * self._longest_key, np.int32), room(len(tables) + 1, np.int32)
        count = find_keys(tables, self._key_columns, self._key_ends, columns, ends)
        return lists(type_, ends, self.names.take(columns[:count], type_.value_type))


@dataclass(frozen=True, slots=True)
class WantedRows:
    messages: NDArray[np.int64]
    tables: NDArray[np.int32]
    most_values: int
    most_names: int


@dataclass(frozen=True, slots=True)
class _Filled:
    entries: Entries
    sizes: Sizes


class RowMaps:
    def __init__(self, batch: LocatedBatch, tables: TableNames, texts: Texts) -> None:
        self._batch = batch
        self._tables = tables
        self._texts = texts
        self._old_kinds = batch.located.fixed.get(batch.numbers["old_kind"], _NO_SIDE.kinds).view(np.uint8)
        self._old, self._new = self._side("old"), self._side("new")

    def before(self, rows: WantedRows, type_: pa.MapType) -> pa.Array:
        """Return the old rows, null if absent. Raises TransactionError, or ValueError for a value that is no text."""
        return self._maps(self._filled(rows, self._old, _NO_SIDE, are_new=False), type_)

    def after(self, rows: WantedRows, type_: pa.MapType, names_type: pa.ListType) -> tuple[pa.Array, pa.Array]:
        """Return the new rows as maps, and the names of unsent values that no whole old row has."""
        filled = self._filled(rows, self._new, self._old, are_new=True)
        names = self._tables.names.take(filled.entries.unsent[: filled.sizes.unsent], names_type.value_type)
        return self._maps(filled, type_), lists(names_type, filled.entries.unsent_ends, names)

    def _side(self, name: str) -> Side:
        number = self._batch.numbers[name]
        cells = self._batch.located.cells.get(number)
        if cells is None:
            return _NO_SIDE
        validity = self._batch.located.validity[number]
        return Side(cells.offsets, validity, cells.kinds, cells.starts, cells.lengths)

    def _filled(self, rows: WantedRows, side: Side, other: Side, *, are_new: bool) -> _Filled:
        offsets = self._batch.offsets
        count, most = len(rows.messages), rows.most_values
        entries = Entries(
            names=room(rows.most_names, np.uint8),
            name_ends=room(most + 1, np.int32),
            values=room(int(offsets[rows.messages[-1] + 1]) - int(offsets[rows.messages[0]]), np.uint8),
            value_ends=room(most + 1, np.int32),
            value_bits=_set_bits(most),
            binary_entries=room(most, np.int32),
            binary_columns=room(most, np.int32),
            ends=room(count + 1, np.int32),
            row_bits=_set_bits(count),
            unsent=room(most, np.int32),
            unsent_ends=room(count + 1, np.int32),
        )
        filled = fill_maps(
            rows.messages,
            rows.tables,
            self._tables.columns,
            side,
            other,
            are_new,
            self._old_kinds,
            self._batch.located.data,
            entries,
        )
        sizes = Sizes(*filled)
        if sizes.wrong >= 0:
            relation = self._tables.descriptions[int(rows.tables[sizes.wrong])]
            reason = f"a row does not have a value for each of the {len(relation.columns)} columns of {relation}"
            raise TransactionError("message", None, None, reason)
        return _Filled(entries, sizes)

    def _maps(self, filled: _Filled, type_: pa.MapType) -> pa.Array:
        entries, sizes = filled.entries, filled.sizes
        buffers = [None, pa.py_buffer(entries.name_ends), pa.py_buffer(entries.names[: sizes.names])]
        names = pa.Array.from_buffers(type_.key_type, sizes.entries, buffers, 0)
        values = self._as_texts(filled) if sizes.binary else self._texts_of(filled)
        items = pa.StructArray.from_arrays([names, values], fields=[type_.key_field, type_.item_field])
        return lists(type_, entries.ends, items, entries.row_bits, sizes.missing)

    def _bytes_of(self, filled: _Filled, type_: pa.DataType) -> pa.Array:
        entries, sizes = filled.entries, filled.sizes
        validity = pa.py_buffer(entries.value_bits) if sizes.nulls else None
        values = pa.py_buffer(entries.values[: sizes.values])
        return pa.Array.from_buffers(
            type_, sizes.entries, [validity, pa.py_buffer(entries.value_ends), values], sizes.nulls
        )

    def _texts_of(self, filled: _Filled) -> pa.Array:
        texts = self._bytes_of(filled, pa.string())
        if not are_utf8(filled.entries.values, filled.entries.value_ends[: filled.sizes.entries + 1]):
            raise TextError.of(self._no_texts(filled))
        return texts

    def _no_texts(self, filled: _Filled) -> Iterator[str]:
        entries = filled.entries
        buffers = [None, pa.py_buffer(entries.name_ends), pa.py_buffer(entries.names[: filled.sizes.names])]
        names = pa.Array.from_buffers(pa.string(), filled.sizes.entries, buffers, 0)
        for name, value in zip(names, self._bytes_of(filled, pa.binary()), strict=True):
            try:
                (value.as_py() or b"").decode()
            except UnicodeDecodeError:
                yield name.as_py()

    def _as_texts(self, filled: _Filled) -> pa.Array:
        texts = self._bytes_of(filled, pa.binary()).to_pylist()
        columns, first = filled.entries.binary_columns[: filled.sizes.binary], self._tables.columns.first
        tables = np.searchsorted(first, columns, side="right") - 1
        binary = (filled.entries.binary_entries[: filled.sizes.binary], tables, columns - first[tables])
        for entry, table, number in zip(*(part.tolist() for part in binary), strict=True):
            column = self._texts.columns(self._tables.descriptions[table])[number]
            texts[entry] = column.type.to_text(column.load(BINARY, texts[entry])).encode()
        with refuse_texts():
            return pa.array(texts, pa.binary()).cast(pa.string())


def _set_bits(count: int) -> NDArray[np.uint8]:
    bits: NDArray[np.uint8] = room((count + 7) // 8, np.uint8)
    bits.fill(0xFF)
    return bits


def lists(
    type_: pa.DataType,
    ends: NDArray[np.int32],
    items: pa.Array,
    bits: NDArray[np.uint8] | None = None,
    missing: int = 0,
) -> pa.Array:
    """Return a list or map array of the items up to the ends (the first is 0); `bits` has 0 for missing rows."""
    validity = pa.py_buffer(bits) if missing else None
    return pa.Array.from_buffers(type_, len(ends) - 1, [validity, pa.py_buffer(ends)], missing, children=[items])
