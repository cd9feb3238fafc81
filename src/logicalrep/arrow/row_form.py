"""The form of a session's rows: the change feed's, or one table's with its own columns and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from logicalrep.transactions.table_names import TableName
from logicalrep.values import TypeCatalog

Reads = Callable[[str, str], bool]

_NAMES = pa.list_(pa.field("element", pa.string(), nullable=False))
_MOMENT = pa.timestamp("us", "UTC")

FEED_SCHEMA = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        ("schema", pa.string()),
        ("table", pa.string()),
        ("relation_id", pa.int64()),
        ("before", pa.map_(pa.string(), pa.string())),
        ("after", pa.map_(pa.string(), pa.string())),
        pa.field("key", _NAMES, nullable=False),
        pa.field("unchanged", _NAMES, nullable=False),
        ("lsn", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_timestamp", _MOMENT),
        ("xid", pa.int64()),
        ("ordinal", pa.int64()),
        ("origin", pa.string()),
        ("gid", pa.string()),
    ]
)
"""The change feed's columns. An LSN is stored as the signed integer with the same bits."""

CHANGE_FIELDS = tuple(
    pa.field(name, type_, nullable=False)
    for name, type_ in (
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", _MOMENT),
        ("_ordinal", pa.int64()),
        ("_unchanged", _NAMES),
    )
)


@dataclass(frozen=True, kw_only=True)
class TableForm:
    table: TableName
    column_types: Mapping[str, str]
    """The Spark types of its own columns in order, such as `decimal(10,2)`."""
    new_columns: Literal["error", "null"] = "error"
    """The treatment of a row that lacks columns: an error, or NULL in those columns."""
    text_columns: tuple[str, ...] = ()
    """The columns that are strings, whatever their types."""
    catalog: TypeCatalog = field(default_factory=TypeCatalog)
    relation_id: int | None = None
    """The table's OID; None identifies the table by its name."""


@dataclass(frozen=True, kw_only=True)
class RowForm:
    """The form and the size of record batches; create it with `feed_form` or `table_form`.

    Example:
        >>> feed_form(memory_limit=1 << 20).memory_limit
        1048576
    """

    schema: pa.Schema
    """The schema of the record batches."""
    rows_per_record_batch: int
    """The most rows of a record batch."""
    memory_limit: int
    """The memory limit for the changes of open transactions, in bytes; the excess is stored on disk."""
    reads: Reads = lambda schema, name: True
    """Whether the feed includes the changes of the table with this schema and name."""
    relations: bool = False
    """Whether the feed has a row for each changed description of a table."""
    table: TableForm | None = None
    """The table; None for the change feed."""


def feed_form(
    *,
    rows_per_record_batch: int = 10_000,
    memory_limit: int = 64 << 20,
) -> RowForm:
    """Return the form of the change feed, with all changes of all tables.

    Args:
        rows_per_record_batch: the most rows of a record batch.
        memory_limit: the memory limit for the changes of open transactions, in bytes; the excess is stored on disk.

    Example:
        >>> feed_form(rows_per_record_batch=1000).schema.names[:3]
        ['op', 'schema', 'table']
    """
    return RowForm(
        schema=FEED_SCHEMA,
        rows_per_record_batch=rows_per_record_batch,
        memory_limit=memory_limit,
    )
