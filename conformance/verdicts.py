"""The one comparison of all tools: what the server reads from their rows' texts, beside what it has itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import sql

from conformance.tool import Row

_LONGEST = 32
"""The most characters of a value that are shown."""
_Values = tuple[str | None, ...]
_PUBLISHED = """
SELECT schemaname, tablename, array_agg(attname ORDER BY attnum),
  array_agg(format_type(atttypid, atttypmod) ORDER BY attnum)
FROM pg_publication_tables JOIN pg_attribute ON attrelid = format('%%I.%%I', schemaname, tablename)::regclass
  AND attnum > 0 AND NOT attisdropped AND attname = ANY (attnames)
WHERE pubname = %s AND NOT EXISTS (
    SELECT FROM pg_partition_tree(attrelid) JOIN pg_class AS class ON class.oid = relid AND relpersistence = 'u'
)
GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(frozen=True)
class PublishedTable:
    """A table of the publication, with its published columns."""

    schema: str
    name: str
    types: Mapping[str, str]
    """The SQL types of the columns, by name, in order."""

    def __str__(self) -> str:
        """Return `schema.table`, both as they are in the catalog."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Verdict:
    """What a comparison found of one table."""

    result: Literal["right", "wrong", "stopped", "failed"]
    detail: str = ""
    """The first difference, or the reason; empty for `right`."""
    rows: int = 0
    """The server's rows."""

    def __str__(self) -> str:
        """Return the verdict as the page has it."""
        return f"{self.result}: {self.detail}" if self.detail else self.result


def query_published(connection: Any, publication: str) -> list[PublishedTable]:
    """Return the tables of a publication that have columns and no unlogged partition."""
    rows = connection.execute(_PUBLISHED, [publication]).fetchall()
    return [PublishedTable(schema, name, dict(zip(names, types, strict=True))) for schema, name, names, types in rows]


def compare(connection: Any, table: PublishedTable, rows: Sequence[Row]) -> Verdict:
    """Return whether rows are right, or how they differ from a plain SELECT.

    A column that rows lack is NULL. A text that the server cannot read as the column's type is compared as it is.

    Args:
        connection: a connection to the server, which commits each statement.
        table: the table.
        rows: the tool's rows, as texts that PostgreSQL reads.
    """
    texts = [_expression(sql.Identifier(name), type_) for name, type_ in table.types.items()]
    query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(texts), sql.Identifier(table.schema, table.name))
    truth: Counter[_Values] = Counter(connection.execute(query).fetchall())
    stored = Counter(tuple(row.get(name) for name in table.types) for row in rows)
    # Most texts are the server's own: PostgreSQL reads only the rows that differ from these.
    missing = truth - stored
    read_rows = Counter(_read(connection, [*(stored - truth).elements()], [*table.types.values()]))
    surplus, missing = read_rows - missing, missing - read_rows
    if not missing and not surplus:
        return Verdict("right", rows=truth.total())
    difference = _difference(list(table.types), list(missing.elements()), list(surplus.elements()))
    return Verdict("wrong", difference, truth.total())


def _read(connection: Any, rows: Sequence[_Values], types: Sequence[str]) -> list[_Values]:
    """Return the texts that the server shows for the texts of rows, in any order."""
    if not rows:
        return []
    names = [f"c{number}" for number in range(len(types))]
    expressions = [_expression(sql.SQL(f"{name}::{type_}"), type_) for name, type_ in zip(names, types, strict=True)]
    arrays = sql.SQL(", ").join([sql.SQL("%s::text[]")] * len(names))
    query = sql.SQL("SELECT {} FROM unnest({}) AS texts({})").format(
        sql.SQL(", ").join(expressions), arrays, sql.SQL(", ".join(names))
    )
    try:
        read_rows: list[_Values] = connection.execute(query, [*map(list, zip(*rows, strict=True))]).fetchall()
    except psycopg.DataError:
        if len(rows) > 1:
            half = len(rows) // 2
            return _read(connection, rows[:half], types) + _read(connection, rows[half:], types)
        if len(types) == 1:
            return [*rows]
        cells = [_read(connection, [(text,)], [type_])[0][0] for text, type_ in zip(rows[0], types, strict=True)]
        return [tuple(cells)]
    return read_rows


def _expression(value: sql.Composable, type_: str) -> sql.Composable:
    # 0.10 and 0.1 are the same number.
    is_numeric = type_.startswith("numeric") and not type_.endswith("[]")
    return sql.SQL("trim_scale({})::text" if is_numeric else "{}::text").format(value)


def _difference(columns: Sequence[str], missing: list[_Values], surplus: list[_Values]) -> str:
    """Return what differs: one value of a row with the same first column, rows too many, or rows that are missing."""
    differences = []
    by_first = {values[0]: values for values in missing}
    paired = [(by_first[values[0]], values) for values in surplus if values[0] in by_first]
    if paired:
        truth, stored = paired[0]
        name, expected, text = next(cell for cell in zip(columns, truth, stored, strict=True) if cell[1] != cell[2])
        where = f"`{name}` is {_quoted(text)}, not {_quoted(expected)}"
        differences.append(where if len(paired) == 1 else f"{where}; {len(paired)} such rows")
    if (count := len(surplus) - len(paired)) > 0:
        differences.append(f"{count} {'row' if count == 1 else 'rows'} too many")
    if (count := len(missing) - len(paired)) > 0:
        differences.append(f"{count} {'row is' if count == 1 else 'rows are'} missing")
    return "; ".join(differences)


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[:_LONGEST]}…`"


__all__ = ["PublishedTable", "Verdict", "compare", "query_published"]
