"""replicate's publications name each table; a table that loses its replica identity is unpublished.

FOR ALL TABLES, or without a replica identity, PostgreSQL would refuse applications' updates and deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.pipeline.catalog.publication_plan import (
    PublicationNeededError,
    PublicationPlan,
    add_statement,
    missing_tables_error,
    query_plan,
)
from logicalrep.pipeline.catalog.rights import Rights
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.postgres.publications import PublishedTable, query_listed_tables
from logicalrep.postgres.retries import LOCKED
from logicalrep.postgres.server import Connection, server_major
from logicalrep.transactions.table_names import TableName


@dataclass(frozen=True, slots=True)
class Published:
    listed: tuple[PublishedTable, ...]
    warnings: tuple[str, ...]
    """One sentence with a remedy for each table that is not replicated."""
    is_settled: bool
    """Whether the publication has all that it was given, and lost all that it had to lose."""

    @property
    def tables(self) -> tuple[TableName, ...]:
        return tuple(table.name for table in self.listed)


def ensure_publication(
    connection: Connection,
    name: str,
    settings: ReplicateSettings,
    *,
    at_start: bool = True,
    may_join: Callable[[TableName], bool] = lambda table: True,
) -> Published:
    """Create the publication, or add new tables to one of ours; return its tables. `connection` needs a lock_timeout.

    Raises PublicationNeededError, or LockNotAvailable and DeadlockDetected while another session alters a table.
    Unless `at_start`, a missing table is only a warning. A new table is added once it `may_join`.
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
        excluded = [table for table in sorted(plan.tables) if table in plan.excluded]
        warnings += _drop_tables(
            connection, plan, plan.candidates.to_unpublish, "the server refuses updates and deletes of"
        )
        warnings += _drop_tables(connection, plan, excluded, "the server still sends changes, which are ignored, of")
        warnings += _add_tables(connection, plan, may_join)
    # A table with an unlogged partition waits, like an unlogged table, and is reloaded once all partitions are logged.
    listed = [
        table
        for table in query_listed_tables(connection, (name,))
        if table.under is None and table.name not in plan.candidates.incomplete
    ]
    absent = {*plan.wanted.names} - {table.name for table in listed}
    if absent and at_start:
        raise missing_tables_error(name, absent, warnings)
    if plan.excluded:
        warnings.append(f"excluded, so neither loaded nor replicated: {plan.excluded}; their stored rows stay")
    pending = {table for table in plan.tables_to_add if plan.refusal(table) is None} - {table.name for table in listed}
    unwanted = {*plan.candidates.to_unpublish, *(table for table in plan.tables if table in plan.excluded)}
    remaining = unwanted & {table.name for table in listed} if plan.is_ours and plan.may_alter else ()
    return Published(
        tuple(table for table in listed if plan.includes(table.name)),
        tuple(warnings),
        is_settled=not pending and not remaining,
    )


def _add_tables(connection: Connection, plan: PublicationPlan, may_join: Callable[[TableName], bool]) -> list[str]:
    """Return why tables were not added. A statement that the server would refuse is not sent: it logs each refusal."""
    refusals = {table: plan.refusal(table) for table in plan.tables_to_add if may_join(table)}
    warnings = []
    for table, refusal in refusals.items():
        if refusal is not None:
            adding = add_statement(plan.name, [table]).as_string(connection)
            statements = "; ".join([*Rights.query(connection, [table]).statements, adding])
            warnings.append(f"{refusal}: let their owner run: {statements}")
    return warnings + _add(connection, plan.name, [table for table, refusal in refusals.items() if refusal is None])


def _add(connection: Connection, name: str, tables: Sequence[TableName]) -> list[str]:
    if not tables:
        return []
    try:
        _run(connection, [add_statement(name, tables)])
    except (PublicationNeededError, *LOCKED) as error:
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
        if isinstance(error, PublicationNeededError):
            return [error.description]
        return [f"{tables[0]} is not replicated yet, as another session has locked it: replicate retries"]
    except (psycopg.errors.UndefinedTable, psycopg.errors.DuplicateObject, psycopg.errors.InvalidSchemaName):
        # Another session has dropped or added a table: the next catalog refresh sees it.
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
    return []


def _drop_tables(connection: Connection, plan: PublicationPlan, tables: Sequence[TableName], effect: str) -> list[str]:
    """Return why tables stay."""
    warnings = []
    for table in tables:
        dropping = sql.SQL("ALTER PUBLICATION {} DROP TABLE ONLY {}")
        statement = dropping.format(sql.Identifier(plan.name), sql.Identifier(*table))
        if plan.is_on_standby or not plan.may_alter:
            text = f"{plan.refusal(table)}: let their owner run: {statement.as_string(connection)}"
            warnings.append(f"{effect} {table}: {text}")
            continue
        try:
            _run(connection, [statement])
        except PublicationNeededError as error:
            warnings.append(f"{effect} {table}: {error.description}")
        except LOCKED:
            warnings.append(f"{table} stays published for now, as another session has locked it: replicate retries")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject, psycopg.errors.InvalidSchemaName):
            # Another session has dropped the table, or removed it from the publication.
            continue
    return warnings


def _run(connection: Connection, statements: Sequence[sql.Composed]) -> None:
    try:
        with connection.transaction():
            for statement in statements:
                connection.execute(statement)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
        texts = "; ".join(statement.as_string(connection) for statement in statements)
        refusal = "this role may not publish the tables"
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            refusal = "a standby cannot publish tables, its primary can"
        raise PublicationNeededError(
            f"{refusal} ({error.diag.message_primary}): let their owner run: {texts}"
        ) from None
