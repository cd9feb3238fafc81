from __future__ import annotations

from collections.abc import Collection

from psycopg import sql

from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.server import Connection, server_major
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError, locked_for_query
from logicalrep.transactions.table_names import TableName

# ATTACH PARTITION writes the catalog rows of all columns, which are unchanged in a table created as a partition.
# If one transaction creates and attaches a table, the numbers of its commands differ.
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
    described = {oid for oid, _ in previous_spec.files} | {oid for oid, *_ in previous_spec.evidence.links}
    return sorted({oid for oid, *_ in current_spec.evidence.links} - described)


def query_created_partitions(connection: Connection, oids: Collection[int]) -> set[int]:
    """Return the tables that were created as partitions and never detached: PostgreSQL sent all of their rows."""
    return {oid for (oid,) in connection.execute(_CREATED, (list(oids),)).fetchall()}


def query_unproven_partitions(
    connection: Connection, previous_spec: TableSpec, current_spec: TableSpec
) -> tuple[int, ...]:
    """`connection` must see the catalog's state of `current_spec`."""
    new_oids = new_partitions(previous_spec, current_spec)
    return (
        tuple(unproven_partitions(previous_spec, current_spec, query_created_partitions(connection, new_oids)))
        if new_oids
        else ()
    )


def query_empty_tables(connection: Connection, oids: Collection[int]) -> set[int]:
    """A table that the role may not read is not included. Raises one of LOCKED while another session alters a table."""
    empty: set[int] = set()
    if server_major(connection) < 15:
        # A session that sent rows of the table, perhaps deleted since, does not send rows of it as a partition.
        return empty
    for oid, name in query_readable(connection, oids):
        try:
            with locked_for_query(connection, oid, name):
                query = sql.SQL("SELECT FROM ONLY {} LIMIT 1").format(sql.Identifier(*name))
                if connection.execute(query).fetchone() is None:
                    empty.add(oid)
        except (SnapshotError, UnsafeTableError, NotReadableError):
            # The load will report the missing right.
            continue
    return empty


def query_readable(connection: Connection, oids: Collection[int]) -> list[tuple[int, TableName]]:
    rows = connection.execute(_READABLE.encode(), (list(oids),)).fetchall()
    return [(oid, TableName(schema, table)) for oid, schema, table in rows]
