"""Columns whose texts change while PostgreSQL sends no change: names of other objects, and sums of money."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from logicalrep.postgres.publications import FIRST_NAMED_TYPE
from logicalrep.postgres.server import Connection
from logicalrep.values.table import TABLE
from logicalrep_runtime.errors import LogicalRepError

_DEPENDENT = {oid: row.text_depends_on for row in TABLE if row.text_depends_on for oid in (row.oid, row.array_oid)}
_TYPES = sorted(_DEPENDENT)
# The types of columns, and the types within domains, arrays, ranges and composite types.
_QUERY = """
WITH RECURSIVE used AS (
    SELECT attrelid, attname, atttypid AS top, atttypid AS type FROM pg_attribute
    WHERE attrelid = ANY(%(oids)s) AND attnum > 0 AND NOT attisdropped
        AND (atttypid = ANY(%(types)s) OR atttypid >= %(first)s::oid)
    UNION
    SELECT used.attrelid, used.attname, used.top, part.type
    FROM used JOIN pg_type AS type ON type.oid = used.type AND used.type >= %(first)s::oid
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY[type.typbasetype, type.typelem]) AS type
        UNION ALL SELECT rngsubtype FROM pg_range WHERE {of_ranges}
        UNION ALL SELECT atttypid FROM pg_attribute
        WHERE attrelid = type.typrelid AND attnum > 0 AND NOT attisdropped
    ) AS part
)
SELECT attrelid::bigint, attname, format_type(top, NULL), type::bigint FROM used
WHERE type = ANY(%(types)s) ORDER BY 1, 2
"""


class ColumnOfNamesError(LogicalRepError, ValueError):
    """A column whose values are the names of other objects: PostgreSQL sends no change when these are renamed."""

    code = "COLUMN_OF_NAMES"


class ChangingText(NamedTuple):
    column: str
    type: str
    is_money: bool
    """Whether the texts depend on the setting `lc_monetary`; otherwise they are names of other objects."""


def query_changing_texts(
    connection: Connection, oids: Collection[int], of_ranges: str
) -> dict[int, list[ChangingText]]:
    """Return the columns by the tables' OIDs; `of_ranges` is the SQL condition that finds a type's `pg_range` row."""
    parameters = {"oids": list(oids), "types": _TYPES, "first": FIRST_NAMED_TYPE}
    rows = connection.execute(_QUERY.format(of_ranges=of_ranges).encode(), parameters).fetchall()
    texts: dict[int, list[ChangingText]] = {oid: [] for oid in oids}
    for oid, column, type_, type_id in rows:
        texts[oid].append(ChangingText(column, type_, _DEPENDENT[type_id] == "lc_monetary"))
    return texts


def refuse_names(table: object, texts: Collection[ChangingText]) -> None:
    for column, type_, is_money in texts:
        if not is_money:
            raise ColumnOfNamesError(
                f"{table}.{column} has the type {type_}, whose values are names of other objects: when an object is "
                "renamed, PostgreSQL sends no change. Leave the column out or mask it as nulled in the settings by "
                "table, or change its type to text or oid"
            )
