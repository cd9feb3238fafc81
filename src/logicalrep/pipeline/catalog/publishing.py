"""The publication of a destination: made where there is none, and kept complete if this project made it.

It names its tables one by one. A publication FOR ALL TABLES, or one with a table that has no replica identity, would
make the server refuse the application's updates and deletes. A table that comes to this leaves the publication again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.pipeline.catalog.publication_plan import (
    PublicationNeededError,
    add_statement,
    missing_tables_error,
    query_plan,
)
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.postgres.publications import PublishedTable, query_listed_tables
from logicalrep.postgres.retries import LOCKED
from logicalrep.postgres.server import Connection, server_major
from logicalrep.transactions.table_names import TableName


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
        LockNotAvailable, DeadlockDetected: another session alters a table.
    """
    plan = query_plan(connection, name, settings, at_start=at_start)
    if plan.incomplete is not None:
        raise plan.incomplete
    if at_start and plan.refusals:
        raise plan.refusals[0]
    warnings = list(plan.warnings)
    if not plan.exists:
        try:
            _run(connection, plan.create_statements(server_major(connection)))
        except PublicationNeededError as error:
            raise PublicationNeededError("; ".join([*warnings, error.description])) from None
    elif plan.is_ours:
        warnings += _drop(connection, name, plan.candidates.to_unpublish, "the server refuses updates and deletes of")
        published = [table for table in sorted(plan.tables) if table in plan.excluded]
        warnings += _drop(connection, name, published, "the server still sends changes, which are ignored, of")
        warnings += _add(connection, name, plan.tables_to_add)
    # A table with an unlogged partition is left until it is whole, as an unlogged table is, and is then loaded again.
    listed = [
        table
        for table in query_listed_tables(connection, (name,))
        if table.under is None and table.name not in plan.candidates.incomplete
    ]
    absent = {*plan.wanted.names} - {table.name for table in listed}
    if absent and at_start:
        raise missing_tables_error(name, absent, warnings)
    if plan.excluded:
        warnings.append(f"excluded, so neither loaded nor followed: {plan.excluded}; rows that are there already stay")
    return Published(tuple(table for table in listed if plan.includes(table.name)), tuple(warnings))


def _add(connection: Connection, name: str, tables: Sequence[TableName]) -> list[str]:
    """Add tables to the publication, each that can be; return why the others are not."""
    if not tables:
        return []
    try:
        _run(connection, [add_statement(name, tables)])
    except (PublicationNeededError, *LOCKED) as error:
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
    warnings = []
    for table in tables:
        dropping = sql.SQL("ALTER PUBLICATION {} DROP TABLE ONLY {}")
        statement = dropping.format(sql.Identifier(name), sql.Identifier(*table))
        try:
            _run(connection, [statement])
        except PublicationNeededError as error:
            warnings.append(f"{effect} {table}: {error.description}")
        except LOCKED:
            warnings.append(f"{table} stays published for now, as another session has locked it; it is tried again")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject, psycopg.errors.InvalidSchemaName):
            # Another session has dropped it.
            continue
    return warnings


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
