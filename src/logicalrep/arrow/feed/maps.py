"""Maps from column names to values for the old or new rows of many messages, and the columns that were not sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.arrow.feed.texts import Texts, refuse_texts
from logicalrep.arrow.kernels import maps as map_kernels
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import BINARY
from logicalrep_protocol.columnar import LocatedBatch
from logicalrep_runtime.columnar.located import PADDING, address, padded_room, room
from logicalrep_runtime.columnar.memory import SLACK
from logicalrep_runtime.columnar.utf8 import are_utf8

__all__ = ["Names", "RowMaps", "TableNames", "Wanted", "addresses"]


class Names:
    """A few texts, taken repeatedly by their number."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.ends = np.cumsum([0, *(len(text.encode()) for text in texts)], dtype=np.int32)
        self.characters = np.frombuffer("".join(texts).encode() + bytes(SLACK), np.uint8)

    def take(self, numbers: Any, type_: Any) -> Any:
        """Return an array of the texts of these numbers, which are int32."""
        count, ends = len(numbers), room(len(numbers) + 1, np.int32)
        size = map_kernels.find_names(address(numbers), count, address(self.ends), address(ends))
        copies = pa.allocate_buffer(size + SLACK)
        map_kernels.copy_names(
            address(numbers), count, self.characters, address(self.ends), copies.address, address(ends)
        )
        return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(ends), copies.slice(0, size)], 0)


class TableNames:
    """The facts on table descriptions, counted from 0, and on their columns, counted together, that maps need."""

    def __init__(self, known: Sequence[TableDescription]) -> None:
        self.known = tuple(known)
        self.widths = np.array([len(relation.columns) for relation in known], np.int64)
        self.first = np.cumsum(self.widths) - self.widths
        """The number of each table's first column."""
        self.is_key = np.array([column.key for relation in known for column in relation.columns], np.uint8)
        self.names = Names([name for relation in known for name in relation.names])
        self.name_sizes = (self.names.ends[self.first + self.widths] - self.names.ends[self.first]).astype(np.int64)
        """The bytes of the names of each table's columns."""
        self.addresses = addresses(self.first, self.widths, self.is_key, self.names.ends)
        keys = [len(relation.key) for relation in known]
        self._key_columns = np.flatnonzero(self.is_key).astype(np.int32)
        self._key_ends = np.cumsum([0, *keys], dtype=np.int64)
        self._longest_key = max(keys, default=0)

    def keys(self, tables: Any, type_: Any) -> Any:
        """Return for each of these tables the list of its key columns' names."""
        columns = room(len(tables) * self._longest_key, np.int32)
        ends = room(len(tables) + 1, np.int32)
        count = map_kernels.find_keys(
            address(tables), len(tables), address(self._key_columns), address(self._key_ends), address(columns),
            address(ends),
        )  # fmt: skip
        return lists(type_, ends, self.names.take(columns[:count], type_.value_type))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Messages whose rows are wanted."""

    messages: Any
    """The messages' indices in the batch, in order."""
    tables: Any
    """The numbers of their tables, as int32."""
    most_values: int
    """The total number of values that their tables have."""
    most_names: int
    """The total bytes of these values' names."""


class _Entries:
    """The entries of the maps of some rows, filled by `kernels.maps`."""

    def __init__(self, rows: Wanted, most_bytes: int) -> None:
        """Make room for the values of all columns, of at most `most_bytes` bytes."""
        count, most = len(rows.messages), rows.most_values
        self.names, self.name_ends = room(rows.most_names + SLACK, np.uint8), room(most + 1, np.int32)
        self.values, self.value_ends = padded_room(most_bytes), room(most + 1, np.int32)
        self.value_bits = _set_bits(most)
        self.binary_entries, self.binary_columns = room(most, np.int32), room(most, np.int32)
        self.ends, self.row_bits = room(count + 1, np.int32), _set_bits(count)
        self.unsent, self.unsent_ends = room(most, np.int32), room(count + 1, np.int32)
        self.addresses = addresses(
            self.names, self.name_ends, self.values[PADDING:], self.value_ends, self.value_bits, self.binary_entries,
            self.binary_columns, self.ends, self.row_bits, self.unsent, self.unsent_ends,
        )  # fmt: skip
        self.found = np.zeros(7, np.int64)

    def filled(self) -> None:
        """Note the sizes after filling."""
        self.count, names_size, self.size, self.nulls, binary, self.missing, left_out = self.found.tolist()
        self.names, self.unsent = self.names[:names_size], self.unsent[:left_out]
        self.binary_entries, self.binary_columns = self.binary_entries[:binary], self.binary_columns[:binary]
        # Copying writes behind the copied bytes.
        self.values[PADDING + self.size :][:PADDING] = 0


def _set_bits(count: int) -> Any:
    bits = room((count + 7) // 8, np.uint8)
    bits.fill(0xFF)
    return bits


class RowMaps:
    """Makes maps of a batch's rows."""

    def __init__(self, batch: LocatedBatch, tables: TableNames, texts: Texts) -> None:
        self._batch = batch
        self._tables = tables
        self._texts = texts
        self._old_kinds = batch.located.fixed.get(batch.numbers["old_kind"])
        self._old, self._new = self._side("old"), self._side("new")

    def before(self, rows: Wanted, type_: Any) -> Any:
        """Return the old rows as an array of maps, null where there is none. A key row has no other columns.

        Raises TransactionError for a row with another number of values than its table has columns, and ValueError for a
        value that is not text.
        """
        return self._maps(self._entries(rows, self._old, None), type_)

    def after(self, rows: Wanted, type_: Any, names_type: Any) -> tuple[Any, Any]:
        """Return the new rows as maps without the values that were not sent, and lists of those columns' names.

        A value that was not sent is taken from the old row if that was sent whole.
        """
        entries = self._entries(rows, self._new, self._old)
        names = self._tables.names.take(entries.unsent, names_type.value_type)
        return self._maps(entries, type_), lists(names_type, entries.unsent_ends, names)

    def _side(self, name: str) -> Any:
        number = self._batch.numbers[name]
        cells = self._batch.located.cells.get(number)
        if cells is None:
            return np.zeros(5, np.int64)
        validity = self._batch.located.validity[number]
        return addresses(cells.offsets, validity, cells.kinds, cells.starts, cells.lengths)

    def _entries(self, rows: Wanted, side: Any, other: Any) -> _Entries:
        places = self._batch.offsets
        entries = _Entries(rows, int(places[rows.messages[-1] + 1]) - int(places[rows.messages[0]]))
        wrong = map_kernels.fill_maps(
            address(rows.messages), len(rows.messages), address(rows.tables), address(self._tables.addresses),
            address(side), 0 if other is None else address(other),
            0 if self._old_kinds is None else address(self._old_kinds), self._batch.data,
            self._tables.names.characters, address(entries.addresses), address(entries.found),
        )  # fmt: skip
        if wrong >= 0:
            relation = self._tables.known[int(rows.tables[wrong])]
            reason = f"a row does not have a value for each of the {len(relation.columns)} columns of {relation}"
            raise TransactionError("message", None, None, reason)
        entries.filled()
        return entries

    def _maps(self, entries: _Entries, type_: Any) -> Any:
        buffers = [None, pa.py_buffer(entries.name_ends), pa.py_buffer(entries.names)]
        names = pa.Array.from_buffers(type_.key_type, entries.count, buffers, 0)
        values = self._as_texts(entries) if len(entries.binary_entries) else self._texts_of(entries)
        items = pa.StructArray.from_arrays([names, values], fields=[type_.key_field, type_.item_field])
        return lists(type_, entries.ends, items, entries.row_bits, entries.missing)

    def _bytes_of(self, entries: _Entries, type_: Any) -> Any:
        validity = pa.py_buffer(entries.value_bits) if entries.nulls else None
        values = pa.py_buffer(entries.values).slice(PADDING, entries.size)
        buffers = [validity, pa.py_buffer(entries.value_ends), values]
        return pa.Array.from_buffers(type_, entries.count, buffers, entries.nulls)

    def _texts_of(self, entries: _Entries) -> Any:
        texts = self._bytes_of(entries, pa.string())
        if not are_utf8(entries.values, PADDING, entries.size, address(entries.value_ends), entries.count):
            with refuse_texts():
                texts.validate(full=True)
        return texts

    def _as_texts(self, entries: _Entries) -> Any:
        """Return the values as text; those in binary format are converted one by one."""
        texts = self._bytes_of(entries, pa.binary()).to_pylist()
        first = self._tables.first
        tables = np.searchsorted(first, entries.binary_columns, side="right") - 1
        places = (entries.binary_entries, tables, entries.binary_columns - first[tables])
        for entry, table, number in zip(*(part.tolist() for part in places), strict=True):
            column = self._texts.columns(self._tables.known[table])[number]
            texts[entry] = column.type.to_text(column.load(BINARY, texts[entry])).encode()
        with refuse_texts():
            return pa.array(texts, pa.binary()).cast(pa.string())


def lists(type_: Any, ends: Any, items: Any, bits: Any = None, missing: int = 0) -> Any:
    """Make a list or map array of the items up to the ends, of which the first is 0; `bits` has 0 for missing rows."""
    validity = pa.py_buffer(bits) if missing else None
    return pa.Array.from_buffers(type_, len(ends) - 1, [validity, pa.py_buffer(ends)], missing, children=[items])


def addresses(*arrays: Any) -> Any:
    """Return the addresses of arrays, as an array for a kernel."""
    return np.array([address(array) for array in arrays], np.int64)
