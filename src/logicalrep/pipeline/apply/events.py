"""A table's changes in the types of the stored table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.changes.change_batch import NEW, OLD, ChangeBatch
from logicalrep.arrow.changes.typed_values import TextReader
from logicalrep.arrow.table.columns import RowReader, Rows
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_settings import KeyNotSentError
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.schema.written_values import unfit_counts, written_values
from logicalrep.transactions.tags import TRUNCATE

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions and commit times of changes."""

    lsns: _Ints
    ordinals: _Ints
    timestamps: _Ints
    """Commit times in microseconds since 1970, UTC."""

    @classmethod
    def of(cls, batch: ChangeBatch) -> Self:
        return cls(batch.lsns, batch.ordinals, batch.rows.column("commit_timestamp").cast(pa.int64()).to_numpy())

    def take(self, indices: _Ints) -> Positions:
        """Return the positions of the given changes."""
        return Positions(self.lsns[indices], self.ordinals[indices], self.timestamps[indices])

    @staticmethod
    def joined(parts: Sequence[Positions]) -> Positions:
        columns = zip(*((part.lsns, part.ordinals, part.timestamps) for part in parts), strict=True)
        return Positions(*map(np.concatenate, columns))


@dataclass(frozen=True)
class RowEvents:
    """Changes after the last truncate, each of which takes a row, puts a row, or both."""

    has_key: bool
    """Whether rows have a key; without one, equal rows are counted."""
    is_truncated: bool
    """Whether a truncate precedes the changes."""
    turns: _Ints
    """The turn of each change, ascending; the changes of one turn take all their rows before they put any."""
    old_of: _Ints
    """The index in `old_keys` of the row that each change takes; -1 for none."""
    new_of: _Ints
    """The index in `new_keys` and `new_rows` of the row that each change puts; -1 for none."""
    old_keys: pa.Array
    new_keys: pa.Array
    new_rows: pa.Table
    """The new rows in the stored table's columns; null where a value was not sent."""
    unsent: Mapping[str, _Bools]
    """For each column with values that were not sent, the new rows that lack it."""

    def __len__(self) -> int:
        return len(self.old_of)


@dataclass(frozen=True)
class Events(RowEvents):
    """Changes in commit order, each in a turn of its own."""

    is_delete: _Bools
    old_rows: pa.Table
    """The key columns of the rows that changes take."""
    positions: Positions
    unfit: Counter[str]
    """The number of values that their column's type cannot hold, by column name."""


class TypedChanges:
    """Reads changes as values of a table's columns."""

    def __init__(self, table: TableSpec, *, allows_missing: bool = False) -> None:
        """Take the table; `allows_missing` reads NULL for a column that a Relation does not list."""
        self._table = table
        self._allows_missing = allows_missing
        self._reader = TextReader(RowReader(table.columns, [True] * len(table.columns), for_spark=True))

    def bind(self, batch: ChangeBatch) -> Callable[[Sequence[pa.Array]], list[pa.Array]]:
        """Return a function that reorders items from the Relation's column order to the table's.

        Raises SchemaMismatchError for other columns, or another replica identity.
        """
        table, names = self._table, batch.relation.names
        missing = {*table.relation.names} - {*names}
        is_missed = batch.has_new.any() or not missing.isdisjoint(table.key or missing)
        if {*names} - {*table.relation.names} or (missing and is_missed and not self._allows_missing):
            raise SchemaMismatchError(f"{table.relation} has changes with the columns {', '.join(names)}")
        if table.sent_key is not None and {*batch.relation.key} != {*table.sent_key} and not self._allows_missing:
            raise SchemaMismatchError(f"{table.relation} has changes with another replica identity")
        ordinals = {name: index for index, name in enumerate(names)}

        def ordered(items: Sequence[pa.Array]) -> list[pa.Array]:
            nothing = pa.nulls(batch.num_rows, pa.string())
            return [items[ordinals[name]] if name in ordinals else nothing for name in table.relation.names]

        return ordered

    def read(self, batch: ChangeBatch, wanted_of_old: Sequence[int]) -> tuple[Rows, Rows, _Bools]:
        """Return the old rows (the given columns), the new rows, and a mask of the values that were not sent.

        Raises SchemaMismatchError as `bind` does.
        """
        ordered = self.bind(batch)
        # Most updates have no old row, and reading none costs as much as reading some.
        old = self._reader.read(ordered(batch.texts(OLD)), wanted_of_old if batch.has_old.any() else ())
        new = self._reader.read(ordered(batch.texts(NEW)), range(len(self._table.columns)))
        unsent = batch.unsent()
        names = batch.relation.names
        ordinals = [names.index(name) if name in names else -1 for name in self._table.relation.names]
        return old, new, np.column_stack([unsent, np.zeros(len(unsent), bool)])[:, ordinals]


def events_of(table: TableSpec, batches: Sequence[ChangeBatch]) -> Events:
    """Return the changes of a table.

    Raises:
        SchemaMismatchError: a Relation lists other columns than the table has.
        ColumnValueError: the column's type cannot hold a value.
        KeyNotSentError: the server sends no key for updated or deleted rows.
    """
    changes = TypedChanges(table)
    parts: list[_BatchEvents] = []
    is_truncated = False
    for batch in batches:
        truncates = np.flatnonzero(batch.ops == TRUNCATE)
        if len(truncates):
            is_truncated, parts = True, []
            batch = batch.slice(int(truncates[-1]) + 1)
        parts.append(_batch_events(table, changes, batch))
    takes = np.concatenate([part.takes for part in parts])
    puts = np.concatenate([part.puts for part in parts])
    unsent = np.concatenate([part.unsent for part in parts])
    new_rows = pa.concat_tables([part.new_rows for part in parts])
    old_rows = pa.concat_tables([part.old_rows for part in parts])
    return Events(
        has_key=table.key is not None,
        is_truncated=is_truncated,
        turns=np.arange(len(takes)),
        old_of=_indices(takes),
        new_of=_indices(puts),
        old_keys=row_keys(table, old_rows),
        new_keys=row_keys(table, new_rows),
        new_rows=new_rows,
        unsent={name: unsent[:, index] for index, name in enumerate(table.names) if unsent[:, index].any()},
        is_delete=takes & ~puts,
        old_rows=old_rows,
        positions=Positions.joined([part.positions for part in parts]),
        unfit=sum((part.unfit for part in parts), Counter()),
    )


@dataclass(frozen=True, slots=True)
class _BatchEvents:
    takes: _Bools
    puts: _Bools
    old_rows: pa.Table
    """The key columns of the rows that changes take."""
    new_rows: pa.Table
    unsent: _Bools
    """For each new row and column, whether the value was not sent."""
    positions: Positions
    unfit: Counter[str]


def _batch_events(table: TableSpec, changes: TypedChanges, batch: ChangeBatch) -> _BatchEvents:
    is_key = dict.fromkeys(table.key_names)
    of_key = [column.ordinal for column in table.written if column.name in is_key]
    old_rows, new_rows, is_unsent = changes.read(batch, of_key)
    count = batch.num_rows
    has_old, puts, takes = batch.has_old, batch.has_new, batch.takes
    new, old = np.flatnonzero(puts), np.flatnonzero(has_old)
    if table.sent_key is None and takes.any():
        raise KeyNotSentError.of(table.relation)
    # An update without an old row leaves the key unchanged.
    old_source = np.where(has_old, np.arange(count), count + np.arange(count))[takes]
    unsent = is_unsent[new][:, [column.ordinal for column in table.written]]
    new_columns, old_columns = {}, {}
    for index, column in enumerate(table.written):
        name = column.name
        new_values = written_values(table, column, new_rows, new)
        if name in is_key:
            both = pa.concat_arrays([written_values(table, column, old_rows, old), new_values])
            # PostgreSQL sends a key part that is stored out of line (TOAST) in the old row.
            new_source = np.where(unsent[:, index] & has_old[new], new, count + new)
            unsent[:, index] &= ~has_old[new]
            old_columns[name] = both.take(pa.array(old_source))
            new_columns[name] = both.take(pa.array(new_source))
        else:
            new_columns[name] = new_values if len(new) == count else new_values.take(pa.array(new))
    return _BatchEvents(
        takes,
        puts,
        pa.table(old_columns),
        pa.table(new_columns, schema=table.schema),
        unsent,
        Positions.of(batch),
        unfit_counts(table, new_rows, new),
    )


def _indices(chosen: _Bools) -> _Ints:
    """Return each item's number among the chosen items; -1 for the rest."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1)
