"""A table's rows in the change feed, decoded: its typed rows, or the old and new rows of its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.table.columns import LocatedValues, PresentRows, RowReader, Rows
from logicalrep.arrow.table.loading import load
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.arrow.table.typed_rows import DELETE, INSERT, POSTIMAGE, PREIMAGE, TRUNCATE, refuse_unfit, typed_batch
from logicalrep.transactions.relations import OLDER_ROWS, TableDescription
from logicalrep.transactions.table_identity import renamed, replaced
from logicalrep.transactions.table_names import TableName
from logicalrep.transactions.tags import NULL, TEXT
from logicalrep.values import TypeCatalog
from logicalrep_runtime.scalars import Lsn

_CHANGE_TYPES = {"insert": INSERT, "update": POSTIMAGE, "delete": DELETE, "truncate": TRUNCATE}
OPS = tuple(_CHANGE_TYPES)
COLUMNS = (
    "op",
    "schema",
    "table",
    "relation_id",
    "before",
    "after",
    "unchanged",
    "commit_lsn",
    "commit_timestamp",
    "ordinal",
)


@dataclass(frozen=True, slots=True)
class Images:
    """The old and new rows of a record batch of the feed; arrays have an item for each of its rows."""

    ops: NDArray[np.int8]
    """INSERT, POSTIMAGE, DELETE or TRUNCATE."""
    has_old: NDArray[np.bool_]
    has_new: NDArray[np.bool_]
    old: Rows
    """The old rows; a key row has the key's columns only."""
    new: Rows
    unsent: NDArray[np.bool_]
    """Whether the new row's value was not sent, for each row and column."""


@dataclass(frozen=True)
class FeedDecoder:
    relation: TableDescription
    text_columns: tuple[str, ...]
    catalog: TypeCatalog = field(default_factory=TypeCatalog)
    allows_missing: bool = field(kw_only=True)
    """Whether a row may lack columns, which are then NULL."""
    seen_at: Lsn | None = None
    """The end of the WAL when the table was read from the server; None to compare only names, as for captures."""

    def typed(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield typed record batches. Raises SchemaMismatchError or ColumnValueError."""
        columns = Texts("utf-8", self.text_columns, self.catalog).columns(self.relation)
        reader = RowReader(columns, [True] * len(columns), for_spark=True)
        for batch in batches:
            self._refuse_other(batch)
            yield self._typed(batch, reader, schema)

    def _refuse_other(self, batch: pa.RecordBatch) -> None:
        """Raise TableChangedError for rows of another table of that name, or of the table under a later name."""
        if self.seen_at is None:
            return
        table, relation_id = self.relation.table, int(self.relation.relation_id)
        relation_ids = _numbers(batch["relation_id"])
        for row in np.flatnonzero(relation_ids != relation_id)[:1].tolist():
            raise replaced(table, relation_id, int(relation_ids[row]))
        is_later = pa.array(_numbers(batch["commit_lsn"]) >= int(self.seen_at))
        is_named = pc.and_(pc.equal(batch["schema"], table.schema), pc.equal(batch["table"], table.name))
        for row in np.flatnonzero(pc.and_not(is_later, is_named).to_numpy(zero_copy_only=False))[:1].tolist():
            raise renamed(table, TableName(batch["schema"][row].as_py(), batch["table"][row].as_py()))

    def images(self, batch: pa.RecordBatch, reader: RowReader) -> Images:
        has_new = batch["after"].is_valid().to_numpy(zero_copy_only=False)
        old, _ = self._rows(batch, "before", reader)
        new, is_given = self._rows(batch, "after", reader)
        unsent = self._unsent(batch)
        missing = ~(is_given | unsent) & has_new[:, None]
        if missing.any() and not self.allows_missing:
            row, number = (int(index[0]) for index in np.nonzero(missing))
            raise SchemaMismatchError(
                f"{self.relation} has no column {self.relation.names[number]} at {_at(batch, row)}, unlike the "
                "stream's schema: set new_columns = null to read NULL there"
            )
        ops = np.array([_CHANGE_TYPES[op] for op in batch["op"].to_pylist()], np.int8)
        has_old = batch["before"].is_valid().to_numpy(zero_copy_only=False)
        return Images(ops, has_old, has_new, old, new, unsent)

    def _typed(self, batch: pa.RecordBatch, reader: RowReader, schema: pa.Schema) -> pa.RecordBatch:
        count = batch.num_rows
        images = self.images(batch, reader)
        ops, old_rows, new_rows, unsent = images.ops, images.old, images.new, images.unsent
        old = np.flatnonzero(images.has_old)
        new = np.flatnonzero(images.has_new | (ops == TRUNCATE))
        # Old and new rows are merged: an update's old row comes before its new one.
        order = np.argsort(np.concatenate((old * 2, new * 2 + 1)), kind="stable")
        change_types = np.concatenate((np.where(ops[old] == DELETE, DELETE, PREIMAGE), ops[new]))[order]
        source = pa.array(np.concatenate((old, new + count))[order])
        arrays, unchanged = [], []
        for number, column in enumerate(reader.columns):
            refuse_unfit(old_rows, column, number, old)
            refuse_unfit(new_rows, column, number, new)
            arrays.append(pa.concat_arrays([rows.values.column(number) for rows in (old_rows, new_rows)]).take(source))
            is_unsent = np.concatenate((np.zeros(len(old), bool), unsent[new, number]))[order]
            if is_unsent.any():
                unchanged.append((column.name, is_unsent))
        rows = np.concatenate((old, new))[order]
        version, timestamp, ordinal = (
            _numbers(batch[name])[rows] for name in ("commit_lsn", "commit_timestamp", "ordinal")
        )
        return typed_batch(schema, arrays, change_types, version, timestamp, ordinal, unchanged)

    def _rows(self, batch: pa.RecordBatch, name: str, reader: RowReader) -> tuple[Rows, NDArray[np.bool_]]:
        maps, width = batch[name], len(reader.columns)
        ends = maps.offsets.to_numpy()
        entries = slice(int(ends[0]), int(ends[-1]))
        of_rows = np.repeat(np.arange(len(maps)), np.diff(ends))
        cells = of_rows * width + self._ordinals(maps.keys[entries], batch, of_rows)
        count = len(maps) * width
        is_given, kinds = np.zeros(count, bool), np.full(count, NULL, np.uint8)
        starts, lengths = np.zeros(count, np.int64), np.zeros(count, np.uint32)
        # Spark may be configured to send large strings.
        items = maps.items[entries].cast(pa.string())
        _, offsets, data = items.buffers()
        bounds = np.frombuffer(offsets, np.int32)[items.offset : items.offset + len(items) + 1]
        is_given[cells] = True
        kinds[cells] = np.where(items.is_valid().to_numpy(zero_copy_only=False), TEXT, NULL)
        starts[cells], lengths[cells] = bounds[:-1], np.diff(bounds)
        source = np.frombuffer(data or b"", np.uint8)
        valid_rows = np.flatnonzero(maps.is_valid().to_numpy(zero_copy_only=False))
        present = PresentRows(
            LocatedValues(source, kinds, starts, lengths),
            len(maps),
            valid_rows,
            valid_rows * width,
            valid_rows,
            valid_rows * width,
        )
        return load(source, [(reader, present)])[0], is_given.reshape(len(maps), width)

    def _unsent(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        lists, width = batch["unchanged"], len(self.relation.names)
        ends = lists.offsets.to_numpy()
        of_rows = np.repeat(np.arange(len(lists)), np.diff(ends))
        unsent = np.zeros((len(lists), width), bool)
        unsent[of_rows, self._ordinals(lists.values[int(ends[0]) : int(ends[-1])], batch, of_rows)] = True
        return unsent

    def _ordinals(self, names: pa.Array, batch: pa.RecordBatch, of_rows: NDArray[np.int64]) -> NDArray[np.int32]:
        ordinals = pc.index_in(names, value_set=pa.array(self.relation.names, names.type))
        if ordinals.null_count:
            number = int(np.flatnonzero(ordinals.is_null().to_numpy(zero_copy_only=False))[0])
            raise SchemaMismatchError(
                f"{self.relation} has the column {names[number]} at {_at(batch, int(of_rows[number]))}, which the "
                "stream's schema does not have: restart the query with new_columns = null to read it, NULL in older "
                f"rows ({OLDER_ROWS}); if it has been dropped since, read the row in the change feed"
            )
        numbers: NDArray[np.int32] = ordinals.to_numpy()
        return numbers


def _numbers(column: pa.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return numbers


def _at(batch: pa.RecordBatch, row: int) -> Lsn:
    return Lsn(int(_numbers(batch["commit_lsn"])[row]) % (1 << 64))
