"""Reads a table's rows without running the table owner's code with the reader's rights.

A relation is locked and checked before it is read: a view that took the table's name would run functions. COPY of a
whole file needs no plan. A query does, and the planner evaluates functions of constants in the expressions of a table's
indexes, statistics and partition key: a query is sent only if these functions belong to superusers or to the reader's
role. Needs psycopg 3.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.postgres.copy_stream import receive_rows, send
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.keys import query_tree
from logicalrep.transactions.table_names import TableName

# Both functions use the current catalog, not the held snapshot's. Only relations that store rows have a file.
_IS_THAT_TABLE = """
SELECT to_regclass(%(name)s) = %(oid)s::oid AND (
    pg_relation_filenode(%(oid)s::oid) IS NOT NULL
    OR EXISTS (SELECT FROM pg_class WHERE oid = %(oid)s::oid AND relkind = 'p')
)
"""
ATTRIBUTES = """
SELECT string_agg(concat_ws(' ', attnum, attname, atttypid, pg_attribute.xmin), ', ' ORDER BY attnum)
FROM pg_attribute WHERE attrelid = {} AND attnum > 0
"""
"""The query for a text that changes with every change of a table's columns, by the table's OID."""
# The functions that the planner may call for tables. pg_depend does not have built-in functions.
_FUNCTIONS = """
SELECT DISTINCT format('%%I.%%I', namespace.nspname, function.proname)
FROM (
    SELECT 'pg_class'::regclass AS catalog, indexrelid AS oid FROM pg_index WHERE indrelid = ANY (%(oids)s::oid[])
    UNION ALL SELECT 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxrelid = ANY (%(oids)s::oid[])
    UNION ALL SELECT 'pg_class'::regclass, unnest(%(oids)s::oid[])
) AS planned
JOIN pg_depend AS needed ON needed.classid = planned.catalog AND needed.objid = planned.oid
LEFT JOIN pg_operator AS operator
    ON needed.refclassid = 'pg_operator'::regclass AND operator.oid = needed.refobjid
JOIN pg_proc AS function
    ON function.oid = CASE needed.refclassid WHEN 'pg_proc'::regclass THEN needed.refobjid ELSE operator.oprcode END
JOIN pg_namespace AS namespace ON namespace.oid = function.pronamespace
JOIN pg_roles AS role ON role.oid = function.proowner
WHERE NOT role.rolsuper AND role.rolname <> current_user
ORDER BY 1
"""


class UnsafeTableError(SlotError):
    """Reading the table would run other roles' code with the reader's rights; the text names the function."""

    code = "TABLE_UNSAFE"


class NotReadableError(SlotError):
    """The role may not read the table, or not all rows; the text has the remedy."""

    code = "TABLE_NOT_READABLE"


@dataclass(frozen=True, slots=True)
class FileRows:
    oid: int
    name: TableName
    columns: tuple[str, ...]
    """Quoted columns, or other expressions."""
    conditions: tuple[str, ...] = ()
    attributes: str | None = None
    """The file's columns (`ATTRIBUTES`) when its row filter was queried; None without a filter."""
    needs_query: bool = False
    """Whether `columns` has expressions or generated columns, which COPY of a table cannot read."""
    nbytes: int = 0
    """The approximate bytes on the server's disk, including rows that do not satisfy the conditions."""

    @property
    def is_planned(self) -> bool:
        return self.needs_query or bool(self.conditions)

    @property
    def source(self) -> sql.Composed:
        if not self.is_planned:
            columns = sql.SQL(", ").join(map(sql.SQL, self.columns))
            return sql.SQL("{} ({})").format(sql.Identifier(*self.name), columns)
        return sql.SQL("({})").format(self.query)

    @property
    def query(self) -> sql.Composed:
        table, columns = sql.Identifier(*self.name), sql.SQL(", ").join(map(sql.SQL, self.columns))
        conditions = sql.SQL(" AND ").join(map(sql.SQL, self.conditions or ("true",)))
        return sql.SQL("SELECT {} FROM ONLY {} WHERE {}").format(columns, table, conditions)


def copy_rows(
    connection: Connection, rows: FileRows, observer: Connection
) -> Generator[memoryview | bytes, None, None]:
    """Yield rows in COPY's text format; the end of the connection's transaction releases the lock on the file.

    `observer` sees the current catalog, without a snapshot; it may be `connection`. Raises SnapshotError if the file's
    name or columns have changed, UnsafeTableError, and NotReadableError.
    """
    with readable(connection, rows.name):
        lock_table(connection, rows.oid, rows.name)
        if rows.is_planned:
            check_functions(observer, rows.name, [rows.oid])
        if rows.attributes is not None and query_scalar(observer, ATTRIBUTES.format("%s"), rows.oid) != rows.attributes:
            raise SnapshotError(f"{rows.name} was altered since its row filter was read", code="SNAPSHOT_STALE")
        send(connection, sql.SQL("COPY {} TO STDOUT").format(rows.source))
        with closing(receive_rows(connection)) as data:
            yield from data


def lock_table(connection: Connection, oid: int, name: TableName) -> None:
    """Lock a table's definition until the transaction ends. Raises SnapshotError if the name has another OID."""
    try:
        connection.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS SHARE MODE").format(sql.Identifier(*name)))
        parameters = {"name": sql.Identifier(*name).as_string(connection), "oid": oid}
        is_same_table = connection.execute(_IS_THAT_TABLE, parameters).fetchone() == (True,)
    except (psycopg.errors.UndefinedTable, psycopg.errors.WrongObjectType, psycopg.errors.InvalidSchemaName):
        is_same_table = False
    if not is_same_table:
        raise SnapshotError(
            f"{name} was dropped, or its name now belongs to another table or a view", code="SNAPSHOT_STALE"
        )


def check_functions(connection: Connection, name: TableName, oids: Sequence[int]) -> None:
    """Raise UnsafeTableError if a query of the tables with these OIDs would call other roles' functions."""
    functions = [row[0] for row in connection.execute(_FUNCTIONS, {"oids": list(oids)}).fetchall()]
    if functions:
        raise UnsafeTableError(
            f"{name} has {', '.join(functions)} in an index, in statistics or in its partition key, and reading a part "
            "of it would run that function with the rights of this role: let a superuser own the function, drop what "
            "uses it, or read as the role that owns it"
        )


@contextmanager
def locked_for_query(
    connection: Connection, oid: int, name: TableName, *, with_partitions: bool = False
) -> Iterator[None]:
    """Lock a table in a transaction, so that queries of the table run no other role's code.

    Raises SnapshotError if the name has another OID, UnsafeTableError, and NotReadableError.
    """
    with readable(connection, name), connection.transaction():
        lock_table(connection, oid, name)
        check_functions(connection, name, query_tree(connection, oid) if with_partitions else [oid])
        yield


@contextmanager
def readable(connection: Connection, name: TableName) -> Iterator[None]:
    """Turn the server's error about missing rights into NotReadableError, which has the remedy."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        role = sql.Identifier(connection.info.user).as_string()
        schema, table = sql.Identifier(name.schema).as_string(), sql.Identifier(*name).as_string()
        raise NotReadableError(
            f"{error.diag.message_primary}: let the owner run GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT "
            f"ON {table} TO {role}; and for a partition that the error names, the same. If row-level security hides "
            f"rows, let a superuser run ALTER ROLE {role} BYPASSRLS"
        ) from None
