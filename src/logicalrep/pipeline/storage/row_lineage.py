"""Row lineage: the id that a row keeps for life, and the sequence number of the commit that last changed the row.

A commit gives ids to the rows of a new data file by their numbers in the file. A row that moves to another file takes
both values along, in the columns of `LINEAGE`; NULL there stands for the inherited value. Source: "Row Lineage" in the
Iceberg Table Spec.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.schema.field_ids import LAST_UPDATE, LINEAGE, ROW_ID


@dataclass(frozen=True, slots=True)
class RowLineage:
    """The lineage that the rows of a committed data file inherit."""

    first_row_id: int
    """The id of the file's first row; the next rows have the next numbers."""
    sequence_number: int
    """The number of the commit that added the file."""


def with_inherited(rows: pa.Table, lineage: RowLineage, numbers: NDArray[np.int64]) -> pa.Table:
    """Return a file's rows with the inherited lineage, in the columns of `LINEAGE` that `rows` has.

    Args:
        rows: rows of the file.
        lineage: the file's lineage.
        numbers: the numbers of the rows in the file.
    """
    inherited = {ROW_ID: pa.array(numbers + lineage.first_row_id), LAST_UPDATE: pa.scalar(lineage.sequence_number)}
    for number, field in enumerate(rows.schema):
        if field in LINEAGE:
            rows = rows.set_column(number, field, pc.coalesce(rows.column(number), inherited[field.name]))
    return rows


def split_lineage(rows: pa.Table, schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """Return the rows in the table's schema, and the columns of `LINEAGE` that have values."""
    names = [name for name in rows.column_names if name not in schema.names]
    with_values = [name for name in names if rows.column(name).null_count < rows.num_rows]
    return rows.drop_columns(names), rows.select(with_values).cast(pa.schema(map(LINEAGE.field, with_values)))


def as_updated(rows: pa.Table, is_updated: NDArray[np.bool_]) -> pa.Table:
    """Return moved rows of which the commit also changes `which`."""
    if LINEAGE.field(LAST_UPDATE) not in rows.schema:
        return rows
    index = rows.schema.get_field_index(LAST_UPDATE)
    unchanged = pc.if_else(pa.array(is_updated), pa.scalar(None, pa.int64()), rows.column(index))
    return rows.set_column(index, rows.schema.field(index), unchanged)


def as_new_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return new rows in the schema of moved rows: a commit gives them their lineage."""
    for field in [*schema][rows.num_columns :]:
        rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows
