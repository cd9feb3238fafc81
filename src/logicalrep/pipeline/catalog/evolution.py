"""The values of a table's old rows in the columns of a later description."""

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
    """A table's later description, and how its rows are those of the earlier one."""

    table: TableSpec
    """The later description."""
    sources: Mapping[str, str]
    """The earlier name of each column that was there, by its name in the stored table, both of them."""
    defaults: Mapping[int, str]
    """The text of the value that old rows have in a new column, by the column's number; NULL in others."""


def evolution(previous_spec: TableSpec, current_spec: TableSpec, catalog_table: CatalogTable) -> Evolution:
    """Return how rows of a description are those of a later one.

    Args:
        before: the description of a table, or of a companion table of it.
        after: the later description, of the table itself.
        now: the table as the catalog describes it.

    Raises:
        NeedsResync: the values that old rows have in its columns are not known.
        PartitionColumnError: its rows are partitioned by a column that is gone.
    """
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
                    f"its column {column.name} may have NULL in place of values, which is not allowed there any more"
                )
        elif not has_texts:
            name = names.get(attnum)
            if name is None:
                raise NeedsResync("a column is gone, and nothing shows any more which values its rows had")
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
    """Return how rows of a description are those of one with columns of texts for more columns: NULL in these."""
    return Evolution(spec.with_texts_of(names), {name: name for name in spec.names}, {})


def fitted(table: TableSpec, number: int, text: str) -> tuple[pa.Array, str | None]:
    """Return a value of a column, given by its number, from the server's text: an array of one value.

    The value is null if the column's type cannot hold it, and its text is returned too.
    """
    column = table.columns[table.attnums.index(number)]
    value, refused = column.load_or_text(ord("t"), text.encode())
    array, unfit = arrow_array_or_text(column, [value], for_spark=True)
    return array, unfit.get(0, refused)


def keeps_texts(previous_spec: TableSpec, source: WrittenColumn, table: TableSpec, column: WrittenColumn) -> bool:
    """Return whether values that no statement wrote anew have the same texts in another type."""
    types = {
        spec.relation.columns[written.ordinal].type_id for spec, written in ((previous_spec, source), (table, column))
    }
    if len(types) > 1 and types != {TEXT, VARCHAR}:
        return False
    if column.type == source.type:
        return True
    # A decimal that the settings give to a numeric without a bound has more or fewer digits than the server's text.
    is_by_modifier = previous_spec.relation.columns[source.ordinal].type_modifier != -1
    return is_by_modifier and is_wider(source, column.type)


def is_wider(column: WrittenColumn, type_: pa.DataType) -> bool:
    """Return whether values keep their text in another type."""
    if not pa.types.is_decimal(column.type):
        return False
    if pa.types.is_string(type_):
        # In a column that does not refuse it, NULL may stand for NaN.
        return column.refuses
    return bool(
        pa.types.is_decimal(type_) and column.type.scale == type_.scale and column.type.precision <= type_.precision
    )
