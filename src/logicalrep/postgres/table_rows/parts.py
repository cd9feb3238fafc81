"""The parts of a table's files, which as many sessions can copy at once under one snapshot. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from psycopg import sql

from logicalrep.postgres.publications import query_row_filter
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.postgres.table_rows.reading import (
    ATTRIBUTES,
    FileRows,
    UnsafeTableError,
    check_functions,
    lock_table,
)
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName

PART = 64 << 20
"""The size of the part of a table that one task reads, in bytes."""
_LITTLE_COST = 10_000.0
"""The planner's cost up to which rows of a condition are read at once: less than a second, for which a lock is held."""


def query_parts(
    connection: Connection,
    relation: TableDescription,
    publications: tuple[str, ...],
    *,
    nulled: Collection[str] = (),
    more: Sequence[str] = (),
    size: int | None = None,
    condition: str | None = None,
) -> list[FileRows]:
    """Return the published rows of a table's parts, or of those of its partitions.

    A file that a query could not read safely is one part.

    Args:
        connection: a session that holds the snapshot.
        relation: the table with its published columns.
        publications: the publications, which may leave out rows.
        nulled: the columns in whose place NULL is read.
        more: expressions whose values follow those of the columns.
        size: about the bytes of a part; 64 MiB by default, and before PostgreSQL 14 the whole table.
        condition: the condition of the wanted rows, in parentheses; a file whose rows the server finds at little cost,
            by an index, is one part. None for all rows.

    Raises:
        UnsafeTableError: a partition is foreign, or a query that is needed would run code of others.
    """
    wants_parts, size = size is not None, PART if size is None else size
    columns = (*query_columns(connection, relation, nulled), *more)
    # Before PostgreSQL 14 rows of a part are looked up by their ctid, which is several times slower.
    has_ranges = server_major(connection) >= 14
    parts = _parts if has_ranges else _looked_up
    # COPY of a table does not have generated columns; it needs a column at least.
    needs_query = bool(more or not columns or not set(nulled).isdisjoint(relation.names)) or _is_generated(
        connection, relation
    )
    found = []
    # The filter comes after the columns: with other columns its operators might be those of other types.
    files = list(_query_files(connection, relation))
    published = query_row_filter(connection, relation.table, publications)
    for file in files:
        if file.is_foreign:
            raise UnsafeTableError(
                f"{file.name} is a foreign table, which no change is sent of: detach it from {relation.table}"
            )
        whole = FileRows(file.oid, file.name, columns, needs_query=needs_query, nbytes=file.nbytes)
        conditions = () if published is None else (f"({published})",)
        if condition is not None:
            conditions = (*conditions, condition)
        if conditions:
            whole = replace(whole, conditions=conditions, attributes=file.attributes)
        count = min(file.pages, -(-file.nbytes // size)) if file.is_heap and (has_ranges or wants_parts) else 1
        if count > 1 or whole.is_planned:
            try:
                check_functions(connection, file.name, [file.oid])
            except UnsafeTableError:
                if whole.is_planned:
                    raise
                count = 1
        if condition is not None and count > 1 and _query_cost(connection, whole) <= _LITTLE_COST:
            count = 1
        for part in parts(file.pages, count) if count > 1 else [[]]:
            found.append(replace(whole, conditions=(*whole.conditions, *part), nbytes=file.nbytes // max(count, 1)))
    return found


def _query_cost(connection: Connection, rows: FileRows) -> float:
    """Return what the reading of rows costs by the planner's estimate, in pages that are read one after another."""
    lock_table(connection, rows.oid, rows.name)
    (plan,) = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(rows.query)).fetchone() or (None,)
    return float(plan[0]["Plan"]["Total Cost"])


def query_columns(connection: Connection, relation: TableDescription, nulled: Collection[str]) -> list[str]:
    """Return a query's columns: a table's published ones, with NULL in the place of those of `nulled`."""
    return ["NULL" if name in nulled else sql.Identifier(name).as_string(connection) for name in relation.names]


@dataclass(frozen=True, slots=True)
class _TableFile:
    """A table, or a partition."""

    oid: int
    name: TableName
    pages: int
    nbytes: int
    is_heap: bool
    """Whether its rows have places in pages."""
    is_foreign: bool
    attributes: str


def _query_files(connection: Connection, relation: TableDescription) -> Iterator[_TableFile]:
    """Yield the table, or its partitions.

    The partitions are those of the snapshot; pg_partition_tree would return the current ones.
    """
    for oid, schema, name, *others in connection.execute(
        f"WITH RECURSIVE files AS (SELECT {int(relation.relation_id)}::oid AS oid UNION ALL "
        "SELECT inhrelid FROM files JOIN pg_inherits ON inhparent = files.oid "
        "JOIN pg_class AS parent ON parent.oid = files.oid AND parent.relkind = 'p') "
        "SELECT class.oid, namespace.nspname, class.relname, "
        # A table that was dropped since has no size; the query for its rows will say so.
        "coalesce(pg_relation_size(class.oid), 0) / current_setting('block_size')::int, "
        "coalesce(pg_table_size(class.oid), 0), "
        # Before PostgreSQL 12 there is no other method, and none is named.
        "coalesce(method.amname, 'heap') = 'heap', class.relkind = 'f', "
        f"({ATTRIBUTES.format('class.oid')}) FROM files "
        "JOIN pg_class AS class ON class.oid = files.oid AND class.relkind <> 'p' "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "LEFT JOIN pg_am AS method ON method.oid = class.relam ORDER BY class.oid"
    ).fetchall():
        yield _TableFile(oid, TableName(schema, name), *others)


def _is_generated(connection: Connection, relation: TableDescription) -> bool:
    """Return whether some of the columns are generated ones, which can be published since PostgreSQL 18."""
    if server_major(connection) < 18:
        return False
    query = "SELECT count(*) FROM pg_attribute WHERE attrelid = %s AND attgenerated <> '' AND attname = ANY(%s)"
    return bool(query_scalar(connection, query, relation.relation_id, list(relation.names)))


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
