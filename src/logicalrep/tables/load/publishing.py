"""The publication of a place: made where there is none, and kept complete if this project made it.

It names its tables one by one. A publication FOR ALL TABLES, or one with a table that has no replica identity, would
make the server refuse the application's updates and deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.postgres.publications import PublishedTable, listed_tables, published_tables
from logicalrep.postgres.slots import Connection, scalar, server_major
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError

_MARK = "made by logicalrep replicate"
"""The comment of publications that are ours."""
_ACTIONS = ("insert", "update", "delete", "truncate")

_FOUND = """
SELECT pubinsert, pubupdate, pubdelete, {truncate}, obj_description(oid, 'pg_publication') = %s
FROM pg_publication WHERE pubname = %s
"""
# The columns of a table's replica identity, with REPLICA IDENTITY FULL those of the primary key, if an index has them.
_KEY = """(
    SELECT array_agg(attribute.attname)
    FROM pg_index AS index
    JOIN pg_attribute AS attribute ON attribute.attrelid = index.indrelid AND attribute.attnum = ANY (index.indkey)
    WHERE index.indrelid = {table}.oid AND index.indisvalid AND index.indimmediate
        AND CASE {table}.relreplident WHEN 'i' THEN index.indisreplident WHEN 'n' THEN false ELSE index.indisprimary END
)"""
# Partitions are published with the table that they are parts of, and tables of an extension belong to it. The columns
# of a partition key depend on their table too. The server takes a partition's own replica identity: for its old rows,
# and for whether it accepts updates.
_CANDIDATES = f"""
WITH RECURSIVE tops AS (
    SELECT class.*, namespace.nspname, {_KEY.format(table="class")} AS key
    FROM pg_class AS class
    JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE class.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND NOT class.relispartition
        AND namespace.nspname NOT IN ('pg_catalog', 'information_schema') AND namespace.nspname !~ '^pg_(toast|temp)'
        AND NOT EXISTS (
            SELECT FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND objid = class.oid AND objsubid = 0 AND deptype IN ('e', 'i', 'a')
        )
), parts AS (
    SELECT tops.oid AS top, tops.oid, tops.relkind FROM tops WHERE tops.relkind = 'p'
    UNION ALL
    SELECT parts.top, class.oid, class.relkind
    FROM parts JOIN pg_inherits ON parts.relkind = 'p' AND inhparent = parts.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT tops.nspname, tops.relname, tops.relkind, tops.relpersistence,
    tops.relreplident = 'f' OR tops.key IS NOT NULL, other.nspname, other.relname, other.is_carried
FROM tops
LEFT JOIN LATERAL (
    SELECT namespace.nspname, leaf.relname, leaf.relkind = 'r' AND leaf.relpersistence = 'p' AS is_carried
    FROM parts
    JOIN pg_class AS leaf ON leaf.oid = parts.oid AND leaf.relkind <> 'p'
    JOIN pg_namespace AS namespace ON namespace.oid = leaf.relnamespace
    WHERE parts.top = tops.oid AND (
        leaf.relkind <> 'r' OR leaf.relpersistence <> 'p'
        OR leaf.relreplident <> 'f' AND ({_KEY.format(table="leaf")} @> tops.key) IS NOT TRUE
    )
    ORDER BY 1, 2 LIMIT 1
) AS other ON true
ORDER BY 1, 2
"""
_PARENT = """
SELECT parent_schema.nspname, parent.relname
FROM pg_inherits
JOIN pg_class AS class ON class.oid = inhrelid AND class.relispartition
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_class AS parent ON parent.oid = inhparent
JOIN pg_namespace AS parent_schema ON parent_schema.oid = parent.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s
"""
_EXISTS = """
SELECT FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s
"""
_KINDS = {"f": "foreign tables", "v": "views", "m": "materialized views", "S": "sequences"}


class PublicationNeededError(LogicalRepError, RuntimeError):
    """A publication that a person has to make or to change; the text has the statements."""

    code = "PUBLICATION_NEEDED"


@dataclass(frozen=True, slots=True)
class Published:
    """The contents of a publication."""

    listed: tuple[PublishedTable, ...]
    """The tables to replicate."""
    warnings: tuple[str, ...]
    """One sentence for each table that is left out, with its remedy."""

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The names of the tables to replicate."""
        return tuple(table.name for table in self.listed)


def ensure_publication(
    connection: Connection, name: str, wanted: Sequence[TableName], *, at_start: bool = True
) -> Published:
    """Return the tables of a publication; make it, or add new tables to it if it is ours.

    Args:
        connection: a connection of a role that owns the tables, where there is something to make; it has a
            lock_timeout, as also the list of the tables waits for sessions that alter one.
        name: the publication's name.
        wanted: the tables to replicate; none for all that can be.
        at_start: whether a wanted table that is not there is an error; later it is a warning, as it may be dropped.

    Raises:
        PublicationNeededError: the role may not make it, or it leaves out some kinds of changes, or wanted tables.
        psycopg.errors.LockNotAvailable: another session alters a table.
    """
    truncate = "pubtruncate" if server_major(connection) >= 11 else "true"
    found = connection.execute(_FOUND.format(truncate=truncate).encode(), (_MARK, name)).fetchone()
    there = published_tables(connection, (name,)) if found is not None else []
    candidates, warnings = _candidates(connection, wanted, there)
    missing = [table for table in wanted if table not in candidates and table not in there]
    if missing and (found is None or found[-1]):
        warnings += [reason for table in missing for reason in _unknown(connection, table)]
        if at_start:
            raise PublicationNeededError("; ".join(warnings))
    if found is None:
        try:
            _run(connection, _making(connection, name, candidates))
        except PublicationNeededError as error:
            raise PublicationNeededError("; ".join([*warnings, error.description])) from None
    elif found[-1]:
        warnings += _add(connection, name, [table for table in candidates if table not in there])
    else:
        left_out = [action for action, is_published in zip(_ACTIONS, found, strict=False) if not is_published]
        if left_out:
            change = sql.SQL("ALTER PUBLICATION {} SET (publish = {})").format(
                sql.Identifier(name), sql.Literal(", ".join(_ACTIONS))
            )
            raise PublicationNeededError(
                f"the publication {name} leaves out {', '.join(left_out)}: run {change.as_string(connection)}",
                code="PUBLICATION_INCOMPLETE",
            )
        warnings = []
    listed = [table for table in listed_tables(connection, (name,)) if table.under is None]
    absent = sorted(set(wanted) - {table.name for table in listed})
    if absent and at_start:
        raise PublicationNeededError(
            f"the publication {name} has no table {', '.join(map(str, absent))}: "
            + ("; ".join(warnings) or "name tables that it has, or add them to it")
        )
    return Published(tuple(table for table in listed if not wanted or table.name in wanted), tuple(warnings))


def exists(connection: Connection, table: TableName) -> bool:
    """Return whether the database has a table."""
    return connection.execute(_EXISTS, table).fetchone() is not None


def is_ours(connection: Connection, name: str) -> bool:
    """Return whether a publication is there, and this project made it."""
    query = "SELECT obj_description(oid, 'pg_publication') = %s FROM pg_publication WHERE pubname = %s"
    return bool(scalar(connection, query, _MARK, name))


def _candidates(
    connection: Connection, wanted: Sequence[TableName], there: Sequence[TableName]
) -> tuple[list[TableName], list[str]]:
    """Return the tables that can be published, and warnings about the others; `there` are published already."""
    can: list[TableName] = []
    warnings: list[str] = []
    others: dict[str, list[str]] = {}
    for schema, name, kind, persistence, has_identity, *part, is_carried in connection.execute(
        _CANDIDATES.encode()
    ).fetchall():
        table = TableName(schema, name)
        if wanted and table not in wanted:
            continue
        shown, other = str(table), table if part[0] is None else TableName(*part)
        if kind in _KINDS or persistence != "p":
            others.setdefault(_KINDS.get(kind, "unlogged tables"), []).append(shown)
        elif is_carried is False:
            warnings.append(
                f"{shown} is not replicated, as its partition {other} is foreign or unlogged, whose changes "
                "logical replication does not carry: detach it"
            )
        elif has_identity and other == table:
            can.append(table)
        else:
            effect = "is not replicated"
            if table in there:
                effect = "is published, and the server refuses its updates and deletes"
            why = f"its partition {other} has another replica identity: run"
            if other == table:
                why = "nothing tells its rows apart in updates and deletes: give it a primary key, or run"
            warnings.append(f"{shown} {effect}, as {why} ALTER TABLE {other} REPLICA IDENTITY FULL")
    if others:
        listed = "; ".join(
            f"{kind} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})" for kind, names in others.items()
        )
        warnings.append(f"logical replication does not carry {listed}; nor does it carry large objects")
    return can, warnings


def _unknown(connection: Connection, table: TableName) -> list[str]:
    """Return why a table is not among those that can be published; nothing if the catalog's warnings say it."""
    parent = connection.execute(_PARENT, table).fetchone()
    if parent is not None:
        return [f"{table} is a partition, which is replicated with {TableName(*parent)}: name that"]
    if not exists(connection, table):
        return [f"{table} cannot be replicated: there is no such table in this database"]
    return []


def _making(connection: Connection, name: str, tables: Sequence[TableName]) -> list[sql.Composed]:
    options = sql.SQL(" WITH (publish_via_partition_root = true)" if server_major(connection) >= 13 else "")
    of_tables = sql.SQL(" FOR TABLE ") + _list(tables) if tables else sql.SQL("")
    return [
        sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(name)) + of_tables + options,
        sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(name), sql.Literal(_MARK)),
    ]


def _add(connection: Connection, name: str, tables: Sequence[TableName]) -> list[str]:
    """Add tables to the publication, each that can be; return why the others are not."""
    if not tables:
        return []
    adding = sql.SQL("ALTER PUBLICATION {} ADD TABLE ").format(sql.Identifier(name)) + _list(tables)
    try:
        _run(connection, [adding])
    except (PublicationNeededError, psycopg.errors.LockNotAvailable) as error:
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
        if isinstance(error, PublicationNeededError):
            return [error.description]
        return [f"{tables[0]} is not replicated yet, as another session has locked it; it is tried again"]
    except (psycopg.errors.UndefinedTable, psycopg.errors.DuplicateObject, psycopg.errors.InvalidSchemaName):
        # Somebody dropped or added one of them meanwhile: the next look finds out.
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
    return []


def _list(tables: Sequence[TableName]) -> sql.Composed:
    # Without ONLY the tables that inherit from one would come with it.
    return sql.SQL(", ").join(sql.SQL("ONLY ") + sql.Identifier(*table) for table in tables)


def _run(connection: Connection, statements: Sequence[sql.Composed]) -> None:
    try:
        with connection.transaction():
            for statement in statements:
                connection.execute(statement)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
        texts = "; ".join(statement.as_string(connection) for statement in statements)
        who = "this role may not publish the tables"
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            who = "a standby cannot publish tables, its primary can"
        raise PublicationNeededError(f"{who} ({error.diag.message_primary}): let their owner run: {texts}") from None
