"""Facts on partitions that come to a table: whether all of their rows were sent, and whether they have any."""

from __future__ import annotations

from collections.abc import Collection

from psycopg import sql

from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.server import Connection, server_major
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError, locked_for_query
from logicalrep.transactions.table_names import TableName

# A table that is attached gets all of its columns written; one that was made as a partition has them as at the start.
# The numbers of commands within a transaction tell the two apart where one transaction did both.
_CREATED = """
SELECT class.oid::bigint FROM pg_class AS class JOIN pg_type AS type ON type.oid = class.reltype
WHERE class.oid = ANY(%s) AND EXISTS (
    SELECT FROM pg_attribute AS attribute
    WHERE attrelid = class.oid AND attnum > 0 AND attinhcount > 0
        AND attribute.xmin = type.xmin AND attribute.cmin = type.cmin
        AND attribute.xmax = '0'::xid AND type.xmax = '0'::xid
)
"""
_READABLE = """
SELECT class.oid::bigint, nspname, relname
FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
WHERE class.oid = ANY(%s) AND has_table_privilege(class.oid, 'SELECT') ORDER BY 1
"""


def unproven_partitions(previous_spec: TableSpec, current_spec: TableSpec, created: Collection[int]) -> list[int]:
    """Return the new partitions that may have rows from before they were partitions, so that these were not sent.

    Args:
        before: the last description that rows were proven under.
        after: the present one.
        created: the partitions, at all levels, that were made as such.
    """
    parents = {oid: parent for oid, parent, _ in current_spec.evidence.links}
    linked = {oid for oid, *_ in previous_spec.evidence.links}
    unproven = []
    for oid in {oid for oid, _ in current_spec.files} - {oid for oid, _ in previous_spec.files}:
        ancestor = oid
        while ancestor in parents and (ancestor in linked or ancestor in created):
            ancestor = parents[ancestor]
        if ancestor in parents:
            unproven.append(oid)
    return sorted(unproven)


def new_partitions(previous_spec: TableSpec, current_spec: TableSpec) -> list[int]:
    """Return the partitions, at all levels, of which it is not known yet whether they were made as such."""
    described = {oid for oid, _ in previous_spec.files} | {oid for oid, *_ in previous_spec.evidence.links}
    return sorted({oid for oid, *_ in current_spec.evidence.links} - described)


def query_created_partitions(connection: Connection, oids: Collection[int]) -> set[int]:
    """Return the tables of these that were made as partitions, and never detached since: all of their rows are sent."""
    return {oid for (oid,) in connection.execute(_CREATED, (list(oids),)).fetchall()}


def query_unproven_partitions(
    connection: Connection, previous_spec: TableSpec, current_spec: TableSpec
) -> tuple[int, ...]:
    """Return the partitions that came to a table, of all levels, and may have rows from before, by their OIDs.

    Args:
        connection: a session that sees the state of the catalog in which the table is as `now`.
        before: the last description that rows were proven under.
        now: the present one.
    """
    new_oids = new_partitions(previous_spec, current_spec)
    return (
        tuple(unproven_partitions(previous_spec, current_spec, query_created_partitions(connection, new_oids)))
        if new_oids
        else ()
    )


def query_empty_tables(connection: Connection, oids: Collection[int]) -> set[int]:
    """Return the tables of these that are known to have no rows.

    Raises one of LOCKED while another session alters one.
    """
    empty: set[int] = set()
    if server_major(connection) < 15:
        # A session that has sent rows of one, which may be gone, sends none of it as a partition.
        return empty
    for oid, name in query_readable(connection, oids):
        try:
            with locked_for_query(connection, oid, name):
                query = sql.SQL("SELECT FROM ONLY {} LIMIT 1").format(sql.Identifier(*name))
                if connection.execute(query).fetchone() is None:
                    empty.add(oid)
        except (SnapshotError, UnsafeTableError, NotReadableError):
            # The load then says which right is missing.
            continue
    return empty


def query_readable(connection: Connection, oids: Collection[int]) -> list[tuple[int, TableName]]:
    """Return the tables of these that the role may read, with their names."""
    rows = connection.execute(_READABLE.encode(), (list(oids),)).fetchall()
    return [(oid, TableName(schema, table)) for oid, schema, table in rows]
