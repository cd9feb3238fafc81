"""The publication of a destination: made where there is none, and kept complete if this project made it.

It names its tables one by one. A publication FOR ALL TABLES, or one with a table that has no replica identity, would
make the server refuse the application's updates and deletes. A table that comes to this leaves the publication again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.pipeline.catalog.publishable import query_candidates, query_unknown
from logicalrep.pipeline.settings import ReplicateSettings
from logicalrep.postgres.publications import PublishedTable, query_listed_tables
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.transactions.table_names import TableName, all_table_names
from logicalrep_runtime.errors import LogicalRepError

_MARK = "made by logicalrep replicate"
"""The comment of publications that are ours."""
_ACTIONS = ("insert", "update", "delete", "truncate")

_FOUND = """
SELECT pubinsert, pubupdate, pubdelete, {truncate}, {via_root}, {generated}, obj_description(oid, 'pg_publication') = %s
FROM pg_publication WHERE pubname = %s
"""


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
    connection: Connection, name: str, settings: ReplicateSettings, *, at_start: bool = True
) -> Published:
    """Return the tables of a publication; make it, or add new tables to it if it is ours.

    Args:
        connection: a connection of a role that owns the tables, where there is something to make; it has a
            lock_timeout, as also the list of the tables waits for sessions that alter one.
        name: the publication's name.
        settings: the settings, which tell the tables to replicate, and those to exclude.
        at_start: whether a wanted table that is not there is an error; later it is a warning, as it may be dropped.

    Raises:
        PublicationNeededError: the role may not make it, or it leaves out some kinds of changes, or wanted tables.
        psycopg.errors.LockNotAvailable: another session alters a table.
    """
    wanted, excluded = all_table_names(settings.tables), sorted(all_table_names(settings.exclude_tables))
    major = server_major(connection)
    of_version = {
        "truncate": "pubtruncate" if major >= 11 else "true",
        "via_root": "pubviaroot" if major >= 13 else "true",
        "generated": "pubgencols = 's'" if major >= 18 else "false",
    }
    found = connection.execute(_FOUND.format(**of_version).encode(), (_MARK, name)).fetchone()
    if found is not None:
        _refuse_incomplete(connection, name, found[:4], via_root=found[4] or not found[-1])
    there = {table.name: table for table in query_listed_tables(connection, (name,))} if found is not None else {}
    sends_generated = found is not None and found[-2]
    if at_start:
        tops = {table.name for table in there.values() if table.under is None}
        unknown = [reason for table in excluded if table not in tops for reason in query_unknown(connection, table)]
        if unknown:
            raise PublicationNeededError(f"what is to be excluded is no table to replicate: {'; '.join(unknown)}")
    candidates, refusing, warnings = query_candidates(
        connection, name, wanted, excluded, there, sends_generated=sends_generated
    )
    missing = [table for table in wanted if table not in candidates and table not in there]
    if missing and (found is None or found[-1]):
        warnings += [reason for table in missing for reason in query_unknown(connection, table)]
        if at_start:
            raise PublicationNeededError("; ".join(warnings))
    if found is None:
        try:
            _run(connection, _making(connection, name, candidates))
        except PublicationNeededError as error:
            raise PublicationNeededError("; ".join([*warnings, error.description])) from None
    elif found[-1]:
        warnings += _drop(connection, name, refusing, "the server refuses updates and deletes of")
        published = [table for table in excluded if table in there]
        warnings += _drop(connection, name, published, "the server still sends changes, which are ignored, of")
        warnings += _add(connection, name, [table for table in candidates if table not in there])
    else:
        warnings = []
    listed = [table for table in query_listed_tables(connection, (name,)) if table.under is None]
    absent = sorted(set(wanted) - {table.name for table in listed})
    if absent and at_start:
        raise PublicationNeededError(
            f"the publication {name} has no table {', '.join(map(str, absent))}: "
            + ("; ".join(warnings) or "name tables that it has, or add them to it")
        )
    if excluded:
        listing = ", ".join(map(str, excluded))
        warnings.append(f"excluded, so neither loaded nor followed: {listing}; rows that are there already stay")
    replicated = (table for table in listed if table.name not in excluded and (not wanted or table.name in wanted))
    return Published(tuple(replicated), tuple(warnings))


def _refuse_incomplete(connection: Connection, name: str, actions: Sequence[bool], *, via_root: bool) -> None:
    """Raise PublicationNeededError for a publication that leaves changes out, or sends those of partitions apart."""
    left_out = [action for action, is_published in zip(_ACTIONS, actions, strict=True) if not is_published]
    if not left_out and via_root:
        return
    what, option = "sends partitions as tables of their own", sql.SQL("publish_via_partition_root = true").format()
    if left_out:
        what = f"leaves out {', '.join(left_out)}"
        option = sql.SQL("publish = {}").format(sql.Literal(", ".join(_ACTIONS)))
    change = sql.SQL("ALTER PUBLICATION {} SET ({})").format(sql.Identifier(name), option)
    raise PublicationNeededError(
        f"the publication {name} {what}: run {change.as_string(connection)}", code="PUBLICATION_INCOMPLETE"
    )


def is_ours(connection: Connection, name: str) -> bool:
    """Return whether a publication is there, and this project made it."""
    query = "SELECT obj_description(oid, 'pg_publication') = %s FROM pg_publication WHERE pubname = %s"
    return bool(query_scalar(connection, query, _MARK, name))


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
        # Another session has dropped or added one of them: the next catalog refresh sees it.
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
    return []


def _drop(connection: Connection, name: str, tables: Sequence[TableName], effect: str) -> list[str]:
    """Take tables out of the publication; return why some stay, and with what effect."""
    said = []
    for table in tables:
        dropping = sql.SQL("ALTER PUBLICATION {} DROP TABLE ONLY {}")
        statement = dropping.format(sql.Identifier(name), sql.Identifier(*table))
        try:
            _run(connection, [statement])
        except PublicationNeededError as error:
            said.append(f"{effect} {table}: {error.description}")
        except psycopg.errors.LockNotAvailable:
            said.append(f"{table} stays published for now, as another session has locked it; it is tried again")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject, psycopg.errors.InvalidSchemaName):
            # Another session has dropped it.
            continue
    return said


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
