"""A table's rows of the change feed as typed changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.arrow.table.columns import RowReader
from logicalrep.arrow.table.feed_decoder import FeedDecoder
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.arrow.table.typed_rows import DELETE, INSERT, TRUNCATE
from logicalrep.pipeline.apply.keys import row_keys
from logicalrep.pipeline.spec.table_settings import KeyNotSentError
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.spec.written_values import written_values

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions and the times of changes."""

    lsns: _Ints
    ordinals: _Ints
    timestamps: _Ints
    """The times of their commits, in microseconds since 1970, UTC."""

    @classmethod
    def of(cls, rows: pa.RecordBatch | pa.Table) -> Self:
        """Return the positions of rows of the change feed."""
        names = ("commit_lsn", "ordinal", "commit_timestamp")
        return cls(*(rows.column(name).cast(pa.int64()).to_numpy() for name in names))

    def take(self, indices: _Ints) -> Positions:
        """Return those of some changes."""
        return Positions(self.lsns[indices], self.ordinals[indices], self.timestamps[indices])

    @staticmethod
    def joined(parts: Sequence[Positions]) -> Positions:
        """Return those of several parts."""
        columns = zip(*((part.lsns, part.ordinals, part.timestamps) for part in parts), strict=True)
        return Positions(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Events:
    """Changes in the order in which they were made, those after the last truncate."""

    has_key: bool
    """Whether rows have a key; without one, equal rows are counted."""
    is_truncated: bool
    """Whether a truncate came before them."""
    old_of: _Ints
    """The index in `old_keys` of the row that each change takes away; -1 if it takes none."""
    new_of: _Ints
    """The index in `new_keys` and `new_rows` of the row that each change puts; -1 if it puts none."""
    old_keys: pa.Array
    new_keys: pa.Array
    new_rows: pa.Table
    """The new rows in the stored table's columns; null where a value was not sent."""
    unsent: Mapping[str, _Bools]
    """For each column with values that were not sent, which of the new rows lack it."""
    is_delete: _Bools
    """True for each change that deletes a row."""
    old_rows: pa.Table
    """The key's columns of the rows that changes take away."""
    positions: Positions
    """The position of each change."""

    def __len__(self) -> int:
        return len(self.old_of)


def events_of(table: TableSpec, batches: Sequence[pa.RecordBatch]) -> Events:
    """Return the changes of a table in rows of the change feed.

    Raises:
        SchemaMismatchError: a row has other columns than the table.
        ColumnValueError: the column's type cannot hold a value.
        KeyNotSentError: rows are updated or deleted, and the server does not send what tells them apart.
    """
    feed = FeedDecoder(table.relation, (), table.catalog, allows_missing=False)
    reader = RowReader(table.columns, [True] * len(table.columns), for_spark=True)
    parts: list[_BatchEvents] = []
    is_truncated = False
    for batch in batches:
        part = _batch_events(table, feed, reader, batch)
        truncates = np.flatnonzero(part.ops == TRUNCATE)
        if len(truncates):
            is_truncated, parts = True, []
            part = _batch_events(table, feed, reader, batch.slice(truncates[-1] + 1))
        parts.append(part)
    takes = np.concatenate([part.ops != INSERT for part in parts])
    puts = np.concatenate([part.ops != DELETE for part in parts])
    unsent = np.concatenate([part.unsent for part in parts])
    new_rows = pa.concat_tables([part.new_rows for part in parts])
    old_rows = pa.concat_tables([part.old_rows for part in parts])
    return Events(
        has_key=table.key is not None,
        is_truncated=is_truncated,
        old_of=_indices(takes),
        new_of=_indices(puts),
        old_keys=row_keys(table, old_rows),
        new_keys=row_keys(table, new_rows),
        new_rows=new_rows,
        unsent={name: unsent[:, index] for index, name in enumerate(table.names) if unsent[:, index].any()},
        is_delete=np.concatenate([part.ops == DELETE for part in parts]),
        old_rows=old_rows,
        positions=Positions.joined([part.positions for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class _BatchEvents:
    ops: NDArray[np.int8]
    old_rows: pa.Table
    """The key's columns of the rows that changes take away."""
    new_rows: pa.Table
    unsent: _Bools
    """For each new row and column whether the value was not sent."""
    positions: Positions


def _batch_events(table: TableSpec, feed: FeedDecoder, reader: RowReader, batch: pa.RecordBatch) -> _BatchEvents:
    _refuse_other_key(table, batch)
    images = feed.images(batch, reader)
    count = batch.num_rows
    new, takes = np.flatnonzero(images.has_new), np.flatnonzero(images.ops != INSERT)
    takes = takes[images.ops[takes] != TRUNCATE]
    if table.sent_key is None and len(takes):
        raise KeyNotSentError.of(table.relation)
    old = np.flatnonzero(images.has_old)
    # An update without an old row has the key that it had before.
    old_source = np.where(images.has_old, np.arange(count), count + np.arange(count))[takes]
    unsent = images.unsent[new][:, [column.ordinal for column in table.written]]
    is_key = dict.fromkeys(table.key_names)
    new_columns, old_columns = {}, {}
    for index, column in enumerate(table.written):
        name = column.name
        new_values = written_values(table, column, images.new, new)
        if name in is_key:
            both = pa.concat_arrays([written_values(table, column, images.old, old), new_values])
            # A part of the key that is stored out of line is sent as a part of the old row.
            new_source = np.where(unsent[:, index] & images.has_old[new], new, count + new)
            unsent[:, index] &= ~images.has_old[new]
            old_columns[name] = both.take(pa.array(old_source))
            new_columns[name] = both.take(pa.array(new_source))
        else:
            new_columns[name] = new_values.take(pa.array(new))
    return _BatchEvents(
        images.ops, pa.table(old_columns), pa.table(new_columns, schema=table.schema), unsent, Positions.of(batch)
    )


def _refuse_other_key(table: TableSpec, batch: pa.RecordBatch) -> None:
    """Raise SchemaMismatchError for rows from before or after a change of the replica identity."""
    if table.sent_key is None:
        return
    lists = batch["key"]
    ends = lists.offsets.to_numpy()
    indices = pc.index_in(lists.values[int(ends[0]) : int(ends[-1])], value_set=pa.array(table.sent_key, pa.string()))
    counts = np.diff(ends)
    if indices.null_count or not (counts == len(table.sent_key)).all():
        raise SchemaMismatchError(f"{table.relation} has changes with another replica identity")


def _indices(chosen: _Bools) -> _Ints:
    """Return for each item its number among the chosen ones; -1 for others."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1)
