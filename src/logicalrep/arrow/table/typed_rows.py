"""The rows of a typed table from its columns, with the columns after the table's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.table.rows import CHANGE_COLUMNS, with_way_out
from logicalrep.arrow.table.table_decoder import Rows
from logicalrep.values import Column, ColumnValueError

_CHANGE_TYPES = pa.array(["insert", "update_preimage", "update_postimage", "delete", "truncate"], pa.string())
INSERT, PREIMAGE, POSTIMAGE, DELETE, TRUNCATE = range(5)


def typed_batch(
    schema: pa.Schema,
    columns: list[pa.Array],
    change_type: NDArray[np.integer],
    commit_version: NDArray[np.int64],
    commit_timestamp: NDArray[np.int64],
    ordinal: NDArray[np.int64],
    unchanged: list[tuple[str, NDArray[np.bool_]]],
) -> pa.RecordBatch:
    """`unchanged` has column names, each with the rows whose value was not sent."""
    field = schema.field
    count = len(change_type)
    type_ = field("_unchanged").type
    if unchanged:
        names = pa.array([[name for name, is_unsent in unchanged if is_unsent[row]] for row in range(count)], type_)
    else:
        ends = pa.py_buffer(np.zeros(count + 1, dtype=np.int32))
        names = pa.Array.from_buffers(type_, count, [None, ends], children=[pa.array([], type_.value_type)])
    arrays = [
        *(
            array if array.type == own.type else array.cast(own.type)
            for own, array in zip(list(schema)[: -len(CHANGE_COLUMNS)], columns, strict=True)
        ),
        _CHANGE_TYPES.take(pa.array(change_type)),
        pa.array(commit_version),
        pa.array(commit_timestamp).cast(field("_commit_timestamp").type),
        pa.array(ordinal),
        names,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def refuse_unfit(
    rows: Rows,
    column: Column,
    ordinal: int,
    chosen: NDArray[np.int64],
    way_out: str | None = None,
    target: str = "the Spark type",
    describe_row: Callable[[int], str] = lambda row: "",
) -> None:
    """Raise ColumnValueError for the first chosen row whose value the column's type cannot hold.

    Args:
        way_out: the remedy; None for the remedy of Spark's source.
        target: the type that cannot hold the value, in words.
        describe_row: returns words that identify a row; they follow the reason.
    """
    unfit = rows.unfit.get(column.name)
    if unfit:
        for row in chosen.tolist():
            if row in unfit:
                kind, text = chr(rows.states.column(ordinal)[row].as_py()), unfit[row]
                # Only a value in binary format that could not be read has bytes.
                unread = kind == "b" and text.startswith("\\x")
                reason = "cannot be read in binary format" if unread else f"{target} cannot hold it"
                reason += describe_row(row)
                error = ColumnValueError(reason, type_name=column.type.name, text=text, kind=kind if unread else "")
                raise with_way_out(error.at(column.table, column.name), way_out)
