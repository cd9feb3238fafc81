"""The rows of a server's tables and of their copies, compared without any code of the project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from tests.pipeline.reading import read_table


def find_differences(
    dsn: str,
    storage: str,
    tables: Iterable[str],
    storage_options: dict[str, str] | None = None,
    *,
    companion: str = "",
    condition: pc.Expression | None = None,
) -> dict[str, str]:
    """Return what differs, by table; `tables` are `schema.table`, and the folders have their names as they are.

    Args:
        dsn: the server.
        storage: the destination.
        tables: the tables.
        storage_options: the options of the destination's storage.
        companion: the end of the folders' names.
        condition: the condition of the stored rows to compare, by the server's columns alone; None compares all rows.
    """
    differences = {}
    with psycopg.connect(
        dsn, options="-c TimeZone=UTC -c extra_float_digits=3 -c synchronize_seqscans=off"
    ) as connection:
        for table in tables:
            schema, _, name = table.partition(".")
            source = source_rows(connection, schema, name)
            uri = f"{storage}/{schema}/{name}{companion}"
            if condition is None:
                stored = delta_rows(uri, storage_options)
            else:
                columns = connection.execute(_COLUMNS, (schema, name)).fetchall()
                rows = read_table(uri, storage_options).filter(condition)
                stored = counted(rows.select([column for (column,) in columns]))
            missing, surplus = source - stored, stored - source
            if missing or surplus:
                differences[table] = (
                    f"{sum(missing.values())} rows of {sum(source.values())} are missing, {sum(surplus.values())} are "
                    f"too many; such as {list(missing)[:2]} and {list(surplus)[:2]}"
                )
    return differences


def source_rows(connection: psycopg.Connection[Any], schema: str, name: str) -> Counter[tuple[Any, ...]]:
    """Return the rows of a server's table with their counts; values are texts, but numbers and times compare by value."""
    return query_rows(connection, sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, name)))


def query_rows(connection: psycopg.Connection[Any], query: sql.SQL | sql.Composed) -> Counter[tuple[Any, ...]]:
    """Return the rows of a query with their counts, as `source_rows` does."""
    described = connection.execute(sql.SQL("SELECT * FROM ({}) AS rows LIMIT 0").format(query)).description
    assert described is not None
    names, width = [sql.Identifier(column.name) for column in described], len(described)
    # A cast to text is another text for some types: an inet of one address has "/32" in it.
    texts = [sql.SQL("format('%s', {})").format(name) for name in names]
    both = sql.SQL(", ").join([*names, *texts])
    rows = connection.execute(sql.SQL("SELECT {} FROM ({}) AS rows").format(both, query))
    return Counter(tuple(map(_plain, row[:width], row[width:])) for row in rows)


def delta_rows(uri: str, storage_options: dict[str, str] | None = None) -> Counter[tuple[Any, ...]]:
    """Return the rows of a table at a destination with their counts."""
    return counted(read_table(uri, storage_options))


def counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return the rows of an Arrow table with their counts."""
    return Counter(tuple(map(hashable, row)) for row in zip(*rows.to_pydict().values(), strict=True))


_COLUMNS = """
SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""


_BY_VALUE = ("str", "int", "bool", "float", "bytes", "date", "datetime", "list")


def _plain(value: Any, text: str) -> Any:
    """Return the value where Delta has such a type, else the server's text."""
    if value is None:
        return None
    if type(value).__name__ == "Decimal":
        return hashable(value)
    return hashable(value) if type(value).__name__ in _BY_VALUE else text


def hashable(value: Any) -> Any:
    """Return a value of a Delta table as rows are compared by it."""
    if isinstance(value, list):
        return tuple(map(hashable, value))
    if isinstance(value, Mapping):
        return tuple((key, hashable(item)) for key, item in value.items())
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if type(value).__name__ == "Decimal":
        # An unconstrained numeric is text in the Delta table, with the server's digits.
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    return value


__all__ = ["counted", "delta_rows", "find_differences", "hashable", "query_rows", "source_rows"]
