"""The rows of the companion table of changes: the old and the new row for an update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.table.typed_rows import DELETE, INSERT, POSTIMAGE, PREIMAGE, TRUNCATE, typed_batch
from logicalrep.pipeline.apply.events import Positions, TypedChanges
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.schema.written_values import written_values
from logicalrep.transactions import tags

_CHANGE_TYPES = np.full(256, -1)
for _tag, _type in {
    tags.INSERT: INSERT, tags.UPDATE: POSTIMAGE, tags.DELETE: DELETE, tags.TRUNCATE: TRUNCATE
}.items():  # fmt: skip
    _CHANGE_TYPES[_tag] = _type


def change_rows(table: TableSpec, batches: Sequence[ChangeBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    """Return the rows of changes; a column that the Relation of a change does not list is NULL.

    Raises:
        SchemaMismatchError: a Relation lists a column that the table does not have.
        ColumnValueError: the column's type cannot hold a value.
    """
    changes = TypedChanges(table, allows_missing=True)
    return [_rows(table, changes, batch, schema) for batch in batches]


def _rows(table: TableSpec, changes: TypedChanges, batch: ChangeBatch, schema: pa.Schema) -> pa.RecordBatch:
    count, ops = batch.num_rows, _CHANGE_TYPES[batch.ops]
    old_rows, new_rows, is_unsent = changes.read(batch, range(len(table.columns)))
    old, new = np.flatnonzero(batch.has_old), np.flatnonzero(batch.has_new | (ops == TRUNCATE))
    # Old and new rows are merged: an update's old row comes before its new one.
    order = np.argsort(np.concatenate((old * 2, new * 2 + 1)), kind="stable")
    change_types = np.concatenate((np.where(ops[old] == DELETE, DELETE, PREIMAGE), ops[new]))[order]
    source = pa.array(np.concatenate((old, new + count))[order])
    arrays, unchanged = [], []
    for column in table.written:
        sides = [written_values(table, column, rows, chosen) for rows, chosen in ((old_rows, old), (new_rows, new))]
        arrays.append(pa.concat_arrays(sides).take(source))
        is_unchanged = np.concatenate((np.zeros(len(old), bool), is_unsent[new, column.ordinal]))[order]
        if is_unchanged.any() and not column.has_texts:
            unchanged.append((table.relation.names[column.ordinal], is_unchanged))
    positions = Positions.of(batch).take(np.concatenate((old, new))[order])
    return typed_batch(
        schema, arrays, change_types, positions.lsns, positions.timestamps, positions.ordinals, unchanged
    )
