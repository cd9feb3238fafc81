"""The parts of a table's files, which as many sessions can copy at once under one snapshot. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from psycopg import sql

from logicalrep.postgres.publications import row_filter
from logicalrep.postgres.slots import Connection, server_major
from logicalrep.transactions.relations import TableDescription

_PART = 64 << 20
"""The size of the part of a table that one task reads, in bytes."""


def part_queries(
    connection: Connection,
    relation: TableDescription,
    publications: tuple[str, ...],
    *,
    nulled: Collection[str] = (),
    more: Sequence[str] = (),
    size: int | None = None,
) -> list[str]:
    """Return the queries for the published rows of a table's parts, or of those of its partitions.

    Args:
        connection: a session that holds the snapshot.
        relation: the table with its published columns.
        publications: the publications, which may leave out rows.
        nulled: the columns in whose place NULL is read.
        more: expressions whose values follow those of the columns.
        size: about the bytes of a part; 64 MiB by default, and before PostgreSQL 14 the whole table.
    """
    wants_parts, size = size is not None, _PART if size is None else size
    published = row_filter(connection, relation.table, publications)
    columns = ", ".join([columns_read(connection, relation, nulled), *more])
    # Before PostgreSQL 14 rows of a part are looked up by their places, which is several times slower.
    has_ranges = server_major(connection) >= 14
    parts = _parts if has_ranges else _looked_up
    queries = []
    for name, pages, total, is_heap in _files(connection, relation):
        count = min(pages, -(-total // size)) if is_heap and (has_ranges or wants_parts) else 1
        for part in parts(pages, count) if count > 1 else [[]]:
            conditions = part if published is None else [f"({published})", *part]
            where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
            queries.append(f"SELECT {columns} FROM ONLY {name}{where}")
    return queries


def columns_read(connection: Connection, relation: TableDescription, nulled: Collection[str]) -> str:
    """Return the list of a query's columns: a table's published ones, with NULL in the place of those of `nulled`."""
    names = ("NULL" if name in nulled else sql.Identifier(name).as_string(connection) for name in relation.names)
    return ", ".join(names)


def _files(connection: Connection, relation: TableDescription) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the table, or its partitions: name, pages, size in bytes, and whether rows have places in them.

    The partitions are those of the snapshot; pg_partition_tree would return the current ones.
    """
    yield from connection.execute(
        f"WITH RECURSIVE files AS (SELECT {int(relation.relation_id)}::oid AS oid UNION ALL "
        "SELECT inhrelid FROM files JOIN pg_inherits ON inhparent = files.oid "
        "JOIN pg_class AS parent ON parent.oid = files.oid AND parent.relkind = 'p') "
        "SELECT format('%I.%I', namespace.nspname, class.relname), "
        # A table that was dropped since has no size; the query for its rows will say so.
        "coalesce(pg_relation_size(class.oid), 0) / current_setting('block_size')::int, "
        "coalesce(pg_table_size(class.oid), 0), "
        # Before PostgreSQL 12 there is no other method, and none is named.
        "coalesce(method.amname, 'heap') = 'heap' FROM files "
        "JOIN pg_class AS class ON class.oid = files.oid AND class.relkind <> 'p' "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "LEFT JOIN pg_am AS method ON method.oid = class.relam ORDER BY class.oid"
    ).fetchall()


def _parts(pages: int, count: int) -> list[list[str]]:
    """Return the conditions for a number of parts of a file with equal numbers of pages.

    The last part has no end, so that it includes rows written since the size was read.
    """
    firsts = [pages * number // count for number in range(count)]
    after = [[f"ctid >= '({first},0)'::tid"] for first in firsts]
    before = [[f"ctid < '({stop},0)'::tid"] for stop in firsts[1:]]
    return [a + b for a, b in zip(after, [*before, []], strict=True)]


# A page has no more rows than these, of a header alone.
_LOOKED_UP = """ctid = ANY (ARRAY(
    SELECT format('(%s,%s)', page, line)::tid FROM generate_series({first}::bigint, {last}) AS page,
        generate_series(1, (current_setting('block_size')::int - 24) / 28) AS line
))"""


def _looked_up(pages: int, count: int) -> list[list[str]]:
    """Return the same conditions for a server that would read the whole file for a range of places."""
    firsts = [pages * number // count for number in range(count + 1)]
    return [[_LOOKED_UP.format(first=first, last=stop - 1)] for first, stop in pairwise(firsts)]
