"""The columns that logicalrep adds to a stored table, behind the columns of the server's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from logicalrep.pipeline.schema.field_ids import with_ids
from logicalrep_runtime.errors import LogicalRepError

Form = Literal["rows", "marked", "history", "changes"]
"""The rows of a stored table: current rows, also marked deleted rows, all versions of rows, or all changes."""

_MOMENT = pa.timestamp("us", "UTC")
_NAMES = pa.list_(pa.field("element", pa.string(), nullable=False))

ADDED_COLUMNS: dict[Form, tuple[pa.Field, ...]] = {
    "rows": (),
    "marked": (pa.field("_is_deleted", pa.bool_(), nullable=False), pa.field("_deleted_at", _MOMENT)),
    "history": (
        pa.field("_valid_from", _MOMENT, nullable=False),
        pa.field("_valid_to", _MOMENT),
        pa.field("_is_current", pa.bool_(), nullable=False),
        pa.field("_valid_from_lsn", pa.int64(), nullable=False),
        pa.field("_valid_from_ordinal", pa.int64(), nullable=False),
        pa.field("_valid_to_lsn", pa.int64()),
        pa.field("_valid_to_ordinal", pa.int64()),
    ),
    "changes": (
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", _MOMENT, nullable=False),
        pa.field("_ordinal", pa.int64(), nullable=False),
        pa.field("_unchanged", _NAMES, nullable=False),
    ),
}

_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
END_COLUMN: dict[Form, str] = {"marked": "_deleted_at", "history": "_valid_to_lsn"}
"""The column that is NULL in current rows."""


class ReservedColumnError(LogicalRepError, ValueError):
    code = "COLUMN_RESERVED"


class CompanionDamagedError(LogicalRepError, RuntimeError):
    """A damaged companion table: no reload could restore its rows."""

    code = "HISTORY_DAMAGED"


def with_extra_columns(schema: pa.Schema, form: Form, table: object, *, has_field_ids: bool = False) -> pa.Schema:
    """Field ids of the added columns count from 1. Raises ReservedColumnError."""
    _refuse(schema.names, form, table)
    return pa.schema([*schema, *_added_fields(form, has_field_ids=has_field_ids)])


def _added_fields(form: Form, *, has_field_ids: bool) -> list[pa.Field]:
    return [with_ids(field, number) if has_field_ids else field for number, field in enumerate(ADDED_COLUMNS[form], 1)]


def _refuse(names: Sequence[str], form: Form, table: object) -> None:
    taken = {field.name for field in ADDED_COLUMNS[form]}
    for name in names:
        if name.casefold() in taken:
            raise ReservedColumnError(
                f"{table} has a column {name}, and the settings add a column of that name to the stored table: rename "
                "the column, or leave out deletes = soft, history or append for this table"
            )


def refuse_feed_columns(names: Sequence[str], table: object) -> None:
    """Raise ReservedColumnError if a column has the name of a column that Delta's change data feed adds."""
    for name in names:
        if name.casefold() in _FEED_COLUMNS:
            raise ReservedColumnError(
                f"{table} has a column {name}, and Delta's change data feed adds a column of that name: rename the "
                "column, or leave out change_data_feed for this table"
            )


def with_live_markers(rows: pa.RecordBatch, form: Form, *, has_field_ids: bool = False) -> pa.RecordBatch:
    if form != "marked":
        return rows
    deleted, at = _added_fields(form, has_field_ids=has_field_ids)
    arrays = [pa.repeat(pa.scalar(False), rows.num_rows), pa.nulls(rows.num_rows, at.type)]
    return pa.RecordBatch.from_arrays([*rows.columns, *arrays], schema=pa.schema([*rows.schema, deleted, at]))
