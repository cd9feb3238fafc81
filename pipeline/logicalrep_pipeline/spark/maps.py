"""Old or new rows of many messages as maps from column names to values, and the columns whose values were not sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.columnar import WalkedBatch
from logicalrep.columnar.utf8 import are_utf8
from logicalrep.columnar.walked import PADDING, address, padded_room, room
from logicalrep_pipeline.changes import BINARY
from logicalrep_pipeline.errors import TransactionError
from logicalrep_pipeline.relations import Relation
from logicalrep_pipeline.spark import map_kernels
from logicalrep_pipeline.spark.feed import Texts, refuse_texts
from logicalrep_pipeline.wide_columns import has

__all__ = ["Maps", "Names", "Tables", "lists"]


class Names:
    """A few texts, to be taken again and again by their number."""

    def __init__(self, texts: Sequence[str]) -> None:
        _, ends, characters = pa.array(texts, pa.string()).buffers()
        self._ends = np.frombuffer(ends, np.int32)
        self._characters = np.frombuffer(characters or b"", np.uint8)

    def take(self, numbers: Any, type_: Any) -> Any:
        """An array of those of these numbers, which are int32."""
        ends = room(len(numbers) + 1, np.int32)
        size = map_kernels.find_names(address(numbers), len(numbers), address(self._ends), address(ends))
        characters = pa.allocate_buffer(size)
        map_kernels.copy_names(
            address(numbers), len(numbers), self._characters, address(self._ends),
            np.frombuffer(characters, np.uint8), address(ends),
        )  # fmt: skip
        return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(ends), characters], 0)


class Tables:
    """What maps need of descriptions of tables, which are counted from 0; and their columns, counted together."""

    def __init__(self, known: Sequence[Relation]) -> None:
        self.known = tuple(known)
        self.widths = np.array([len(relation.columns) for relation in known], np.int64)
        self.first = np.cumsum(self.widths) - self.widths
        """The number of each one's first column."""
        self.is_key = np.array([column.key for relation in known for column in relation.columns], np.uint8)
        self.names = Names([name for relation in known for name in relation.names])
        self.addresses = _addresses(self.first, self.widths, self.is_key)
        keys = [len(relation.key) for relation in known]
        self._key_columns = np.flatnonzero(self.is_key).astype(np.int32)
        self._key_ends = np.cumsum([0, *keys], dtype=np.int64)
        self._key_sizes = np.array(keys, np.int64)

    def keys(self, tables: Any, type_: Any) -> Any:
        """Of each of these tables the list of the names of its key's columns."""
        columns = room(int(self._key_sizes[tables].sum()), np.int32)
        ends = room(len(tables) + 1, np.int32)
        map_kernels.find_keys(
            address(tables), len(tables), address(self._key_columns), address(self._key_ends), address(columns),
            address(ends),
        )  # fmt: skip
        return lists(type_, ends, self.names.take(columns, type_.value_type))


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of the maps of some rows; of each the number of its column and where its value is."""

    columns: Any
    starts: Any
    lengths: Any
    kinds: Any
    ends: Any
    """0, and for each row where its entries end."""
    unsent: Any
    """The numbers of columns whose values were not sent."""
    unsent_ends: Any
    size: int
    """How many bytes the values have."""
    nulls: int
    has_binary: bool

    @property
    def addresses(self) -> Any:
        return _addresses(self.columns, self.starts, self.lengths, self.kinds, self.ends, self.unsent, self.unsent_ends)


class Maps:
    """Makes maps of a batch's rows, whose messages and tables are given by arrays of their numbers."""

    def __init__(self, batch: WalkedBatch, tables: Tables, texts: Texts) -> None:
        self._batch = batch
        self._tables = tables
        self._texts = texts
        self._numbers = batch.numbers
        self._old_kinds = batch.walked.fixed.get(self._numbers["old_kind"])

    def before(self, rows: Any, tables: Any, type_: Any) -> Any:
        """The old rows as an array of maps, null where there is none; those that are a key without the other columns.

        Raises TransactionError for a row with another number of values than its table has columns, ValueError for a
        value that is no text.
        """
        return self._maps("old", rows, self._find(rows, tables, self._side("old"), None), type_)

    def after(self, rows: Any, tables: Any, type_: Any, names_type: Any) -> tuple[Any, Any]:
        """The new rows likewise, without the values that were not sent; and lists of the names of those columns.

        Where the whole old row was sent, such a value is taken from there.
        """
        entries = self._find(rows, tables, self._side("new"), self._side("old"))
        names = self._tables.names.take(entries.unsent, names_type.value_type)
        return self._maps("new", rows, entries, type_), lists(names_type, entries.unsent_ends, names)

    def _side(self, name: str) -> Any:
        cells = self._batch.walked.cells.get(self._numbers[name])
        if cells is None:
            return np.zeros(5, np.int64)
        validity = self._batch.walked.validity[self._numbers[name]]
        return _addresses(cells.offsets, validity, cells.kinds, cells.starts, cells.lengths)

    def _find(self, rows: Any, tables: Any, side: Any, other: Any) -> _Entries:
        most = int(self._tables.widths[tables].sum())
        columns, unsent, lengths, kinds = (room(most, dtype) for dtype in (np.int32, np.int32, np.uint32, np.uint8))
        ends, unsent_ends = (room(len(rows) + 1, np.int32) for _ in range(2))
        starts = room(most, np.int64)
        entries = _Entries(columns, starts, lengths, kinds, ends, unsent, unsent_ends, 0, 0, False)
        found, left_out, size, nulls, binary, wrong = map_kernels.find_entries(
            address(rows), len(rows), address(tables), address(self._tables.addresses), address(side),
            0 if other is None else address(other), 0 if self._old_kinds is None else address(self._old_kinds),
            address(entries.addresses),
        )  # fmt: skip
        if wrong >= 0:
            relation = self._tables.known[int(tables[wrong])]
            reason = f"a row has not as many values as the Relation of {relation} has columns: {len(relation.columns)}"
            raise TransactionError("message", None, None, reason)
        return _Entries(
            columns[:found], starts[:found], lengths[:found], kinds[:found], ends, unsent[:left_out], unsent_ends,
            size, nulls, bool(binary),
        )  # fmt: skip

    def _maps(self, side: str, rows: Any, entries: _Entries, type_: Any) -> Any:
        names = self._tables.names.take(entries.columns, type_.key_type)
        values = self._as_texts(entries) if entries.has_binary else self._texts_of(entries)
        items = pa.StructArray.from_arrays([names, values], fields=[type_.key_field, type_.item_field])
        bits = self._batch.walked.validity.get(self._numbers[side])
        present = np.zeros(len(rows), bool) if bits is None else has(bits, rows)
        return lists(type_, entries.ends, items, present)

    def _texts_of(self, entries: _Entries) -> Any:
        count, size = len(entries.columns), entries.size
        ends, characters = room(count + 1, np.int32), padded_room(size)
        map_kernels.copy_values(
            self._batch.data, address(entries.starts), address(entries.lengths), count, characters, PADDING, size,
            address(ends),
        )  # fmt: skip
        validity = None
        if entries.nulls:
            validity = pa.py_buffer(np.packbits(entries.lengths != map_kernels.NO_VALUE, bitorder="little"))
        buffers = [validity, pa.py_buffer(ends), pa.py_buffer(characters).slice(PADDING, size)]
        values = pa.Array.from_buffers(pa.string(), count, buffers, entries.nulls)
        if not are_utf8(characters, PADDING, size, address(ends), count):
            with refuse_texts():
                values.validate(full=True)
        return values

    def _as_texts(self, entries: _Entries) -> Any:
        """The same, one by one: values in binary format become text."""
        texts: list[bytes | None] = []
        first = self._tables.first
        of_entries = np.searchsorted(first, entries.columns, side="right") - 1
        for number, table, start, length, kind in zip(
            *(part.tolist() for part in (entries.columns, of_entries, entries.starts, entries.lengths, entries.kinds)),
            strict=True,
        ):
            if length == map_kernels.NO_VALUE:
                texts.append(None)
                continue
            value = self._batch.data[start : start + length].tobytes()
            if kind == BINARY:
                column = self._texts.columns(self._tables.known[table])[number - int(first[table])]
                value = column.type.to_text(column.load(kind, value)).encode()
            texts.append(value)
        with refuse_texts():
            return pa.array(texts, pa.binary()).cast(pa.string())


def lists(type_: Any, ends: Any, items: Any, present: Any = None) -> Any:
    """A list or map array of the items up to the ends, of which the first is 0; null where a row is not `present`."""
    nulls = 0 if present is None else len(present) - int(present.sum())
    validity = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(type_, len(ends) - 1, [validity, pa.py_buffer(ends)], nulls, children=[items])


def _addresses(*arrays: Any) -> Any:
    return np.array([address(array) for array in arrays], np.int64)
