"""The parts of a table's files, for parallel copies under one snapshot. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise

from psycopg import sql

from logicalrep.postgres.publications import query_row_filter
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.postgres.table_rows.keys import attached_condition
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
"""The size of a part, which one task reads, in bytes."""
_LITTLE_COST = 10_000.0
"""The planner's cost up to which a condition's rows are one part: reading them takes less than a second."""


def query_parts(
    connection: Connection,
    relation: TableDescription,
    publications: tuple[str, ...],
    *,
    nulled: Collection[str] = (),
    more: Sequence[str] = (),
    size: int | None = None,
    condition: str | None = None,
    only: Collection[int] | None = None,
) -> list[FileRows]:
    """Return the parts of a table's published rows, by partition; a file that a query cannot read safely is one part.

    Args:
        connection: a session that holds the snapshot.
        nulled: columns to read as NULL.
        more: expressions that follow the columns.
        size: the approximate bytes of a part; by default 64 MiB, or before PostgreSQL 14 the whole table.
        condition: in parentheses; a file whose rows the server finds by an index is one part.
        only: the OIDs of the partitions to read; by default all.

    Raises:
        UnsafeTableError: a partition is foreign, or a necessary query would run other roles' code.
    """
    wants_parts, size = size is not None, PART if size is None else size
    columns = (*query_columns(connection, relation, nulled), *more)
    # Before PostgreSQL 14 rows of a part are looked up by their ctid, which is several times slower.
    has_ranges = server_major(connection) >= 14
    parts = _parts if has_ranges else _parts_by_lookup
    # COPY of a table has no generated columns, and needs at least one column.
    needs_query = bool(more or not columns or not set(nulled).isdisjoint(relation.names)) or _is_generated(
        connection, relation
    )
    parts_of_files = []
    # The filter is queried after the columns: if columns change, its operators may belong to other types.
    files = [file for file in _query_files(connection, relation) if only is None or file.oid in only]
    published = query_row_filter(connection, relation.table, publications)
    for file in files:
        if file.is_foreign:
            raise UnsafeTableError(
                f"{file.name} is a foreign table, whose changes are not sent: detach it from {relation.table}"
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
            parts_of_files.append(
                replace(whole, conditions=(*whole.conditions, *part), nbytes=file.nbytes // max(count, 1))
            )
    return parts_of_files


def gathered_parts(parts_of_table: Sequence[FileRows], size: int) -> Iterator[tuple[FileRows, ...]]:
    """Yield adjacent parts together, about `size` bytes at a time: within one part of it, but for the last."""
    starts = accumulate((part.nbytes for part in parts_of_table), initial=0)
    for _, group in groupby(zip(starts, parts_of_table, strict=False), lambda item: item[0] // size):
        yield tuple(part for _, part in group)


def _query_cost(connection: Connection, rows: FileRows) -> float:
    # The planner's unit is a sequentially read page.
    lock_table(connection, rows.oid, rows.name)
    (plan,) = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(rows.query)).fetchone() or (None,)
    return float(plan[0]["Plan"]["Total Cost"])


def query_columns(connection: Connection, relation: TableDescription, nulled: Collection[str]) -> list[str]:
    return ["NULL" if name in nulled else sql.Identifier(name).as_string(connection) for name in relation.names]


@dataclass(frozen=True, slots=True)
class _TableFile:
    oid: int
    name: TableName
    pages: int
    nbytes: int
    is_heap: bool
    """Whether rows have a page number, in `ctid`."""
    is_foreign: bool
    attributes: str


def _query_files(connection: Connection, relation: TableDescription) -> Iterator[_TableFile]:
    # pg_partition_tree would return the current partitions, not the snapshot's.
    for oid, schema, name, *facts in connection.execute(
        f"WITH RECURSIVE files AS (SELECT {int(relation.relation_id)}::oid AS oid UNION ALL "
        f"SELECT inhrelid FROM files JOIN pg_inherits ON inhparent = files.oid AND {attached_condition(connection)} "
        "JOIN pg_class AS parent ON parent.oid = files.oid AND parent.relkind = 'p') "
        "SELECT class.oid, namespace.nspname, class.relname, "
        # A dropped table has no size; the query for its rows reports it.
        "coalesce(pg_relation_size(class.oid), 0) / current_setting('block_size')::int, "
        "coalesce(pg_table_size(class.oid), 0), "
        # Before PostgreSQL 12 heap is the only method, without a name.
        "coalesce(method.amname, 'heap') = 'heap', class.relkind = 'f', "
        f"({ATTRIBUTES.format('class.oid')}) FROM files "
        "JOIN pg_class AS class ON class.oid = files.oid AND class.relkind <> 'p' "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "LEFT JOIN pg_am AS method ON method.oid = class.relam ORDER BY class.oid"
    ).fetchall():
        yield _TableFile(oid, TableName(schema, name), *facts)


def _is_generated(connection: Connection, relation: TableDescription) -> bool:
    # Generated columns can be published since PostgreSQL 18.
    if server_major(connection) < 18:
        return False
    query = "SELECT count(*) FROM pg_attribute WHERE attrelid = %s AND attgenerated <> '' AND attname = ANY(%s)"
    return bool(query_scalar(connection, query, relation.relation_id, list(relation.names)))


def _parts(pages: int, count: int) -> list[list[str]]:
    # The last part has no end, so that it includes rows written after the size was queried.
    firsts = [pages * number // count for number in range(count)]
    starts = [[f"ctid >= '({first},0)'::tid"] for first in firsts]
    ends = [[f"ctid < '({stop},0)'::tid"] for stop in firsts[1:]]
    return [a + b for a, b in zip(starts, [*ends, []], strict=True)]


# The most rows of a page: rows that consist of a header.
_LOOKED_UP = """ctid = ANY (ARRAY(
    SELECT format('(%s,%s)', page, line)::tid FROM generate_series({first}::bigint, {last}) AS page,
        generate_series(1, (current_setting('block_size')::int - 24) / 28) AS line
))"""


def _parts_by_lookup(pages: int, count: int) -> list[list[str]]:
    # Before PostgreSQL 14 the server would read the whole file for a range of ctid.
    firsts = [pages * number // count for number in range(count + 1)]
    return [[_LOOKED_UP.format(first=first, last=stop - 1)] for first, stop in pairwise(firsts)]
