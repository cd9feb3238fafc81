"""The statistics of data files in manifests: bounds as bytes, by field id.

Source: "Single-value serialization" in the Iceberg Table Spec.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from logicalrep.pipeline.schema.field_ids import field_id
from logicalrep.pipeline.storage.statistics import Statistics, statistics_columns

_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")


def to_bounds(schema: pa.Schema, rows: int, statistics: Statistics) -> dict[str, Any]:
    """Return the statistics of a file's entry in a manifest, with counts of all columns.

    DuckDB 1.4 takes a column without counts for a column without rows.
    """
    nulls = statistics.nulls | statistics.other_nulls
    fields = {name: schema.field(name) for name in nulls}
    ids = {name: field_id(field) for name, field in fields.items()}
    return {
        "value_counts": {ids[name]: rows for name in fields},
        "null_value_counts": {ids[name]: count for name, count in nulls.items()},
        "lower_bounds": {ids[name]: _bytes(fields[name].type, value) for name, value in statistics.least.items()},
        "upper_bounds": {ids[name]: _bytes(fields[name].type, value) for name, value in statistics.greatest.items()},
    }


def from_bounds(
    schema: pa.Schema,
    rows: int,
    least: Mapping[int, bytes] | None,
    greatest: Mapping[int, bytes] | None,
    nulls: Mapping[int, int] | None,
    *,
    is_own: bool,
) -> Statistics:
    """Return the statistics of a file in a table's schema.

    Args:
        schema: the table's schema.
        rows: the number of the file's rows.
        least: the lower bounds.
        greatest: the upper bounds.
        nulls: the numbers of nulls.
        is_own: whether replicate wrote the file: bounds of other programs may be truncated texts.
    """
    fields = {field_id(field): field for field in schema}
    counts = {fields[key].name: count for key, count in (nulls or {}).items() if key in fields}
    bounded = {*statistics_columns(schema)}
    if not is_own:
        bounded = {name for name in bounded if pa.types.is_integer(schema.field(name).type)}

    def values(bounds: Mapping[int, bytes] | None) -> dict[str, Any]:
        return {
            fields[key].name: _value(fields[key].type, data)
            for key, data in (bounds or {}).items()
            if key in fields and fields[key].name in bounded
        }

    least_values, greatest_values = values(least), values(greatest)
    # A file without bounds has counts too.
    has_bounds = bool(least_values) or all(counts[name] == rows for name in counts.keys() & bounded)
    with_bounds = {
        name for name in counts.keys() & bounded if has_bounds and (name in least_values or counts[name] == rows)
    }
    return Statistics(
        least_values,
        greatest_values,
        {name: count for name, count in counts.items() if name in with_bounds},
        {name: count for name, count in counts.items() if name not in with_bounds},
    )


def _is_long(type_: pa.DataType) -> bool:
    return bool(pa.types.is_int64(type_) or pa.types.is_timestamp(type_))


def _is_int(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_date32(type_))


def _bytes(type_: pa.DataType, value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, int):
        value = pa.scalar(value, type_).cast(pa.int64() if _is_long(type_) else pa.int32()).as_py()
    return (_LONG if _is_long(type_) else _INT).pack(value)


def _value(type_: pa.DataType, data: bytes) -> object:
    if pa.types.is_string(type_):
        return data.decode()
    number = (_LONG if len(data) == _LONG.size else _INT).unpack(data)[0]
    if pa.types.is_integer(type_):
        return number
    return pa.scalar(number, pa.int64() if _is_long(type_) else pa.int32()).cast(type_).as_py()
