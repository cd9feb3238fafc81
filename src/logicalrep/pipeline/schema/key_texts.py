from __future__ import annotations

import pyarrow as pa

from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.values import Column
from logicalrep.values.types.temporal import ExtendedDate, ExtendedTimestamp

_EPOCH_DAYS = 10_957
"""The days from 1970 to 2000, PostgreSQL's epoch."""
_EPOCH_MICROSECONDS = _EPOCH_DAYS * 86_400_000_000


def key_texts(table: TableSpec, keys: pa.Table) -> dict[str, list[str | None]]:
    columns = {column.name: table.columns[column.ordinal] for column in table.written}
    return {columns[name].name: _texts(columns[name], keys.column(name)) for name in table.key_names}


def _texts(column: Column, values: pa.ChunkedArray) -> list[str | None]:
    type_ = values.type
    if pa.types.is_timestamp(type_):
        has_zone = type_.tz is not None
        timestamps = values.cast(pa.int64()).to_pylist()
        return [
            None if value is None else str(ExtendedTimestamp(value - _EPOCH_MICROSECONDS, has_zone))
            for value in timestamps
        ]
    if pa.types.is_date(type_):
        days = values.cast(pa.int32()).to_pylist()
        return [None if value is None else str(ExtendedDate(value - _EPOCH_DAYS)) for value in days]
    texts = values.to_pylist()
    # A column that is text at the destination has the server's text.
    return (
        texts
        if pa.types.is_string(type_)
        else [None if value is None else column.type.to_text(value) for value in texts]
    )
