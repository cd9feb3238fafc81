from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from logicalrep.pipeline.catalog.definitions import TEXT, VARCHAR, CatalogTable
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_spec import TableSpec, WrittenColumn
from logicalrep.values import arrow_array_or_text


@dataclass(frozen=True)
class Evolution:
    table: TableSpec
    sources: Mapping[str, str]
    """The earlier name of each older column, by its later name; both are names in the stored table."""
    defaults: Mapping[int, str]
    """The text of the value of old rows in a new column, by the column's number; NULL in other new columns."""


def evolution(previous_spec: TableSpec, current_spec: TableSpec, catalog_table: CatalogTable) -> Evolution:
    """Raises NeedsResync for unknown values of old rows, PartitionColumnError if a partitioning column was dropped."""
    table = replace(
        current_spec,
        settings=previous_spec.settings,
        companion=previous_spec.companion,
        skipped=previous_spec.skipped,
        partitions=previous_spec.partitions,
    )
    table = table.with_texts(previous_spec.texts)
    _ = table.file_partitions
    names = dict(zip(catalog_table.table.attnums, catalog_table.table.relation.names, strict=True))
    sources: dict[str, str] = {}
    defaults: dict[int, str] = {}
    for (attnum, has_texts), column in table.by_number.items():
        source = previous_spec.by_number.get((attnum, has_texts))
        if source is not None:
            sources[column.name] = source.name
            if not keeps_texts(previous_spec, source, table, column):
                raise NeedsResync(f"the type of its column {column.name} changed")
            if column.refuses > source.refuses:
                raise NeedsResync(
                    f"NULL may have replaced values in its column {column.name}, which no longer allows it"
                )
        elif not has_texts:
            name = names.get(attnum)
            if name is None:
                raise NeedsResync(
                    "a new column was dropped, and the catalog no longer shows the values of old rows in it"
                )
            values = catalog_table.missing.get(name, frozenset({None}))
            if len(values) != 1:
                raise NeedsResync(f"its partitions have different values in the new column {name}")
            (value,) = values
            if value is not None:
                defaults[attnum] = value
    table = table.with_texts(
        number for number, value in defaults.items() if fitted(table, number, value)[1] is not None
    )
    dropped = {*previous_spec.dropped_columns, *previous_spec.names} - set(table.names)
    return Evolution(replace(table, dropped_columns=tuple(sorted(dropped))), sources, defaults)


def evolution_with_text_columns(spec: TableSpec, names: Iterable[str]) -> Evolution:
    """Return the evolution that adds text columns for the named columns of the server; old rows have NULL in them."""
    return Evolution(spec.with_texts_of(names), {name: name for name in spec.names}, {})


def fitted(table: TableSpec, number: int, text: str) -> tuple[pa.Array, str | None]:
    """Return the server's text as an array of one value; if the type cannot hold it, null and the text."""
    column = table.columns[table.attnums.index(number)]
    value, refused = column.load_or_text(ord("t"), text.encode())
    array, unfit = arrow_array_or_text(column, [value], for_spark=True)
    return array, unfit.get(0, refused)


def keeps_texts(previous_spec: TableSpec, source: WrittenColumn, table: TableSpec, column: WrittenColumn) -> bool:
    """Return whether values that no statement rewrote keep their texts in a column's later type."""
    types = {
        spec.relation.columns[written.ordinal].type_id for spec, written in ((previous_spec, source), (table, column))
    }
    if len(types) > 1 and types != {TEXT, VARCHAR}:
        return False
    if column.type == source.type:
        return True
    # If the settings chose the decimal for an unbounded numeric, it has other digits than the server's text.
    is_by_modifier = previous_spec.relation.columns[source.ordinal].type_modifier != -1
    return is_by_modifier and is_wider(source, column.type)


def is_wider(column: WrittenColumn, type_: pa.DataType) -> bool:
    if not pa.types.is_decimal(column.type):
        return False
    if pa.types.is_string(type_):
        # Unless the column refuses such values, NULL may replace NaN.
        return column.refuses
    return bool(
        pa.types.is_decimal(type_) and column.type.scale == type_.scale and column.type.precision <= type_.precision
    )
