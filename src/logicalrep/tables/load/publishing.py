"""The publication of a place: made where there is none, and kept complete if this project made it.

It names its tables one by one. A publication FOR ALL TABLES, or one with a table that has no replica identity, would
make the server refuse the application's updates and deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.postgres.publications import published_tables
from logicalrep.postgres.slots import Connection, server_major
from logicalrep.transactions.table_names import TableName, written
from logicalrep_runtime.errors import LogicalRepError

_MARK = "made by logicalrep replicate"
"""The comment of publications that are ours."""
_ACTIONS = ("insert", "update", "delete", "truncate")

_FOUND = """
SELECT pubinsert, pubupdate, pubdelete, {truncate}, obj_description(oid, 'pg_publication') = %s
FROM pg_publication WHERE pubname = %s
"""
# Partitions are published with the table that they are parts of, and tables of an extension belong to it. The columns
# of a partition key depend on their table too.
_CANDIDATES = """
SELECT namespace.nspname, class.relname, class.relkind, class.relpersistence,
    class.relreplident = 'f' OR EXISTS (
        SELECT FROM pg_index AS index
        WHERE index.indrelid = class.oid AND index.indisvalid AND index.indimmediate
            AND CASE class.relreplident WHEN 'd' THEN index.indisprimary WHEN 'i' THEN index.indisreplident END
    )
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE class.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND NOT class.relispartition
    AND namespace.nspname NOT IN ('pg_catalog', 'information_schema') AND namespace.nspname !~ '^pg_(toast|temp)'
    AND NOT EXISTS (
        SELECT FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = class.oid AND objsubid = 0 AND deptype IN ('e', 'i', 'a')
    )
ORDER BY 1, 2
"""
_KINDS = {"f": "foreign tables", "v": "views", "m": "materialized views", "S": "sequences"}


class PublicationNeededError(LogicalRepError, RuntimeError):
    """A publication that a person has to make or to change; the text has the statements."""

    code = "PUBLICATION_NEEDED"


@dataclass(frozen=True, slots=True)
class Published:
    """What a publication has."""

    tables: tuple[TableName, ...]
    """The tables to replicate."""
    warnings: tuple[str, ...]
    """What is left out, and what helps."""


def ensure_publication(connection: Connection, name: str, wanted: Sequence[TableName]) -> Published:
    """Return the tables of a publication; make it, or add new tables to it if it is ours.

    Args:
        connection: a connection of a role that owns the tables, where there is something to make.
        name: the publication's name.
        wanted: the tables to replicate; none for all that can be.

    Raises:
        PublicationNeededError: the role may not make it, or it leaves out some kinds of changes, or wanted tables.
    """
    truncate = "pubtruncate" if server_major(connection) >= 11 else "true"
    found = connection.execute(_FOUND.format(truncate=truncate).encode(), (_MARK, name)).fetchone()
    candidates, warnings = _candidates(connection, wanted)
    missing = [table for table in wanted if table not in candidates]
    if missing and (found is None or found[-1]):
        names = ", ".join(written(table) for table in missing)
        raise PublicationNeededError(
            "; ".join([f"{names} cannot be replicated", *(warnings or ["there is no such table in this database"])])
        )
    if found is None:
        _run(connection, _making(connection, name, candidates))
    elif found[-1]:
        there = published_tables(connection, (name,))
        missing = [table for table in candidates if table not in there]
        if missing:
            try:
                _run(connection, [_adding(name, missing)])
            except PublicationNeededError as error:
                warnings.append(error.description)
    else:
        left_out = [action for action, is_published in zip(_ACTIONS, found, strict=False) if not is_published]
        if left_out:
            change = sql.SQL("ALTER PUBLICATION {} SET (publish = {})").format(
                sql.Identifier(name), sql.Literal(", ".join(_ACTIONS))
            )
            raise PublicationNeededError(
                f"the publication {name} leaves out {', '.join(left_out)}: run {_text(connection, change)}",
                code="PUBLICATION_INCOMPLETE",
            )
        warnings = []
    tables = published_tables(connection, (name,))
    absent = [table for table in wanted if table not in tables]
    if absent:
        raise PublicationNeededError(
            f"the publication {name} has no table {', '.join(written(table) for table in absent)}: "
            + ("; ".join(warnings) or "name tables that it has, or add them to it")
        )
    return Published(tuple(table for table in tables if not wanted or table in wanted), tuple(warnings))


def is_ours(connection: Connection, name: str) -> bool:
    """Return whether a publication is there, and this project made it."""
    row = connection.execute(
        "SELECT obj_description(oid, 'pg_publication') = %s FROM pg_publication WHERE pubname = %s", (_MARK, name)
    ).fetchone()
    return row is not None and bool(row[0])


def _candidates(connection: Connection, wanted: Sequence[TableName]) -> tuple[list[TableName], list[str]]:
    """Return the tables that can be published, and warnings about the others."""
    can: list[TableName] = []
    warnings: list[str] = []
    others: dict[str, list[str]] = {}
    for schema, name, kind, persistence, has_identity in connection.execute(_CANDIDATES).fetchall():
        table = TableName(schema, name)
        if wanted and table not in wanted:
            continue
        if kind in _KINDS or persistence != "p":
            others.setdefault(_KINDS.get(kind, "unlogged tables"), []).append(written(table))
        elif has_identity:
            can.append(table)
        else:
            shown = written(table)
            warnings.append(
                f"{shown} is not replicated, as nothing tells its rows apart in updates and deletes: give it a primary "
                f"key, or run ALTER TABLE {shown} REPLICA IDENTITY FULL"
            )
    if others:
        listed = "; ".join(
            f"{kind} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})" for kind, names in others.items()
        )
        warnings.append(f"logical replication does not carry {listed}; nor does it carry large objects")
    return can, warnings


def _making(connection: Connection, name: str, tables: Sequence[TableName]) -> list[sql.Composed]:
    options = sql.SQL(" WITH (publish_via_partition_root = true)" if server_major(connection) >= 13 else "")
    of_tables = sql.SQL(" FOR TABLE ") + _list(tables) if tables else sql.SQL("")
    return [
        sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(name)) + of_tables + options,
        sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(name), sql.Literal(_MARK)),
    ]


def _adding(name: str, tables: Sequence[TableName]) -> sql.Composed:
    return sql.SQL("ALTER PUBLICATION {} ADD TABLE ").format(sql.Identifier(name)) + _list(tables)


def _list(tables: Sequence[TableName]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(*table) for table in tables)


def _run(connection: Connection, statements: Sequence[sql.Composed]) -> None:
    try:
        with connection.transaction():
            for statement in statements:
                connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        texts = "; ".join(_text(connection, statement) for statement in statements)
        raise PublicationNeededError(
            f"this role may not publish the tables ({error.diag.message_primary}): let their owner run: {texts}"
        ) from None


def _text(connection: Connection, statement: sql.Composed) -> str:
    return statement.as_string(connection)


__all__ = ["PublicationNeededError", "Published", "ensure_publication", "is_ours"]
