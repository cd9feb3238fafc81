"""Field ids: the numbers that identify columns and nested fields in data files, whatever their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa

_ID = b"PARQUET:field_id"
IDS_OF_A_COLUMN = 16
"""The field ids reserved for a column and the fields within it: no type has more than six fields."""


ROW_ID, LAST_UPDATE = "_row_id", "_last_updated_sequence_number"
LINEAGE = pa.schema(
    [
        pa.field(ROW_ID, pa.int64(), True, {_ID: b"2147483540"}),
        pa.field(LAST_UPDATE, pa.int64(), True, {_ID: b"2147483539"}),
    ]
)
"""The columns with the lineage of rows, in data files whose rows come from other files; readers hide the columns.

Source: "Reserved Field IDs" in the Iceberg Table Spec.
"""


def field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


def with_column_ids(field: pa.Field, number: int, has_texts: bool) -> pa.Field:
    """Return a column's field with ids computed from its number on the server; a text column has the last id."""
    return with_ids(field, IDS_OF_A_COLUMN * number + (IDS_OF_A_COLUMN - 1 if has_texts else 0))


def with_ids(field: pa.Field, first: int) -> pa.Field:
    """Return a field with an id; the fields within it have the next ids."""
    return _numbered(field, count(first))


def _numbered(field: pa.Field, ids: Iterator[int]) -> pa.Field:
    own, type_ = next(ids), field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_numbered(type_.field(number), ids) for number in range(type_.num_fields)])
    elif pa.types.is_list(type_):
        type_ = pa.list_(_numbered(type_.value_field.with_name("element"), ids))
    elif pa.types.is_map(type_):
        type_ = pa.map_(_numbered(type_.key_field, ids), _numbered(type_.item_field, ids))
    return pa.field(field.name, type_, field.nullable, {_ID: str(own).encode()})


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Formats with field ids have no 16-bit integers: the files have 32-bit integers."""
    return pa.schema([_widened(field) if field_id(field) is not None else field for field in schema])


def _widened(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pa.types.is_int16(type_):
        return field.with_type(pa.int32())
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(_widened(type_.value_field)))
    return field


def names_in_file(file: pa.Schema, schema: pa.Schema, columns: Sequence[str]) -> dict[str, str]:
    """Raises ValueError if the table's columns have ids and the file's columns have none."""
    ids = {column: field_id(schema.field(column)) for column in columns}
    if all(id_ is None for id_ in ids.values()):
        file_names = set(file.names)
        return {column: column for column in columns if column in file_names}
    by_id = {field_id(field): field.name for field in file}
    if by_id.keys() == {None}:
        raise ValueError("its columns have no field ids")
    return {column: by_id[id_] for column, id_ in ids.items() if id_ in by_id}
