"""The rows that are wanted of a session: those of the change feed, or of one table in its own columns and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from logicalrep.transactions.table_names import TableName
from logicalrep.values import TypeCatalog


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """One table in its own columns and types."""

    table: TableName
    column_types: Mapping[str, str]
    """The Spark types of its own columns in their order, such as `decimal(10,2)`."""
    new_columns: Literal["error", "null"] = "error"
    """What a row is that has not all of the columns: an error, or NULL in those."""
    text_columns: tuple[str, ...] = ()
    """The columns that are strings, whatever their types."""
    catalog: TypeCatalog = field(default_factory=TypeCatalog)
    """What the server's catalog says of the types, which is more than messages do."""
    relation_id: int | None = None
    """The table's OID; None goes by its name."""


@dataclass(frozen=True, kw_only=True)
class RowForm:
    """The rows of record batches, and how large these are."""

    schema: pa.Schema
    """That of the record batches."""
    rows_per_record_batch: int
    memory_limit: int
    """How many bytes of memory the changes of open transactions may take; what is more is kept on disk."""
    reads: Callable[[str, str], bool] = lambda schema, name: True
    """Whether the changes of the table with this schema and name are in the feed."""
    relations: bool = False
    """Whether the feed has a row for each description of a table that differs from the last."""
    has_maps: bool = True
    """Whether `before` and `after` of the feed are maps; else they are variants."""
    table: TableForm | None = None
    """The table; None for the change feed."""
