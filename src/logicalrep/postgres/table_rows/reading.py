"""The reading of a table's rows, so that no code of the table's owner runs with the rights of the reader.

A relation is locked and checked before it is read: its name might have been given to a view, whose functions would
run. COPY of a whole file needs no plan. A query does, and the server's planner evaluates functions of constants in the
expressions of a table's indexes and statistics, and of its partition key: a query is sent only if these have functions
of superusers and of the reader itself. Needs psycopg 3.
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

# A held snapshot has the catalog of its time; both functions have that of now. Only what stores rows has a file.
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
"""The query for the columns of the table with an OID; the text is another one after each change of them."""
# The functions that the planner may call for some tables. The server's own functions are no one's dependencies.
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
    """A table whose reading would run code of others with the rights of the reader; the text names the function."""

    code = "TABLE_UNSAFE"


class NotReadableError(SlotError):
    """A table that the role may not read, or not whole; the text says what to run."""

    code = "TABLE_NOT_READABLE"


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one file: of a table, or of one of its partitions."""

    oid: int
    name: TableName
    columns: tuple[str, ...]
    """The columns, quoted, or other expressions."""
    conditions: tuple[str, ...] = ()
    attributes: str | None = None
    """The file's columns (`ATTRIBUTES`) when a row filter among the conditions was valid; None without a filter."""
    needs_query: bool = False
    """Whether there are expressions or generated columns among the columns, which COPY of a table does not have."""
    nbytes: int = 0
    """About the bytes that the rows have on the server's disk, those that conditions leave out included."""

    @property
    def is_planned(self) -> bool:
        """Whether the server plans a query for them."""
        return self.needs_query or bool(self.conditions)

    @property
    def source(self) -> sql.Composed:
        """The source that follows the word COPY."""
        if not self.is_planned:
            columns = sql.SQL(", ").join(map(sql.SQL, self.columns))
            return sql.SQL("{} ({})").format(sql.Identifier(*self.name), columns)
        return sql.SQL("({})").format(self.query)

    @property
    def query(self) -> sql.Composed:
        """The query for the rows."""
        table, columns = sql.Identifier(*self.name), sql.SQL(", ").join(map(sql.SQL, self.columns))
        conditions = sql.SQL(" AND ").join(map(sql.SQL, self.conditions or ("true",)))
        return sql.SQL("SELECT {} FROM ONLY {} WHERE {}").format(columns, table, conditions)


def copy_rows(connection: Connection, rows: FileRows, now: Connection) -> Generator[memoryview | bytes, None, None]:
    """Yield rows as COPY sends them. The session is in a transaction, whose end releases the lock on the file.

    Args:
        connection: the session that reads.
        rows: the rows.
        now: a session without a snapshot, which sees the catalog as it is; it may be the same one.

    Raises:
        SnapshotError: the file has another name than before, or other columns than its filter was made for.
        UnsafeTableError: a function of others would run.
        NotReadableError: the role may not read all of it.
    """
    with readable(rows.name):
        lock_table(connection, rows.oid, rows.name)
        if rows.is_planned:
            check_functions(now, rows.name, [rows.oid])
        if rows.attributes is not None and query_scalar(now, ATTRIBUTES.format("%s"), rows.oid) != rows.attributes:
            raise SnapshotError(f"{rows.name} was altered since its row filter was read", code="SNAPSHOT_STALE")
        send(connection, sql.SQL("COPY {} TO STDOUT").format(rows.source))
        with closing(receive_rows(connection)) as data:
            yield from data


def lock_table(connection: Connection, oid: int, name: TableName) -> None:
    """Lock a table against another definition until the transaction ends; raise SnapshotError if it is not that one."""
    try:
        connection.execute(sql.SQL("LOCK TABLE ONLY {} IN ACCESS SHARE MODE").format(sql.Identifier(*name)))
        parameters = {"name": sql.Identifier(*name).as_string(connection), "oid": oid}
        is_that = connection.execute(_IS_THAT_TABLE, parameters).fetchone() == (True,)
    except (psycopg.errors.UndefinedTable, psycopg.errors.WrongObjectType, psycopg.errors.InvalidSchemaName):
        is_that = False
    if not is_that:
        raise SnapshotError(
            f"{name} is gone, or its name belongs to another table or a view now", code="SNAPSHOT_STALE"
        )


def check_functions(connection: Connection, name: TableName, oids: Sequence[int]) -> None:
    """Raise UnsafeTableError if a query of tables with these OIDs would call functions of other roles."""
    found = [row[0] for row in connection.execute(_FUNCTIONS, {"oids": list(oids)}).fetchall()]
    if found:
        raise UnsafeTableError(
            f"{name} has {', '.join(found)} in an index, in statistics or in its partition key, and reading a part of "
            "it would run that with the rights of this role: let a superuser own the function, drop what uses it, or "
            "read as the role that owns it"
        )


@contextmanager
def locked_for_query(
    connection: Connection, oid: int, name: TableName, *, with_partitions: bool = False
) -> Iterator[None]:
    """Lock a table in a transaction of this context, whose queries of it run no code of others.

    Args:
        connection: the session.
        oid: the table's OID.
        name: the table's name.
        with_partitions: whether its partitions are queried too, and not its own file alone.

    Raises:
        SnapshotError: the name belongs to another table by now.
        UnsafeTableError: a function of others would run.
        NotReadableError: the role may not read all of it.
    """
    with readable(name), connection.transaction():
        lock_table(connection, oid, name)
        check_functions(connection, name, query_tree(connection, oid) if with_partitions else [oid])
        yield


@contextmanager
def readable(name: TableName) -> Iterator[None]:
    """Raise NotReadableError, with its remedy, for an error of the server about missing rights."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotReadableError(
            f"{error.diag.message_primary}: let the owner run GRANT SELECT ON {name}, or on its partition that is "
            "named, TO the role, or where row-level security hides rows, let a superuser run ALTER ROLE … BYPASSRLS"
        ) from None
