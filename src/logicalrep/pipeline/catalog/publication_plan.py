"""The plan for a destination's publication: its tables, missing tables, and the statements; it changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from psycopg import sql

from logicalrep.pipeline.catalog.publishable import Candidates, query_candidates, query_unpublishable_reasons
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.postgres.publications import PublishedTable, query_listed_tables
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.transactions.table_names import TableName, TableSelection, matches
from logicalrep_runtime.errors import LogicalRepError

_MARK = "made by logicalrep replicate"
_ACTIONS = ("insert", "update", "delete", "truncate")
_SENDS_GENERATED = 18
"""The first major version whose publications can send stored generated columns."""

_FOUND = """
SELECT pubinsert, pubupdate, pubdelete, {truncate}, {via_root}, {generated}, pg_is_in_recovery(),
    pg_has_role(pubowner, 'USAGE'), obj_description(oid, 'pg_publication') = %s
FROM pg_publication WHERE pubname = %s
"""


class PublicationNeededError(LogicalRepError, RuntimeError):
    code = "PUBLICATION_NEEDED"
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPlan:
    name: str
    exists: bool
    is_ours: bool
    wanted: TableSelection
    """The tables to replicate; empty for all."""
    excluded: TableSelection
    tables: frozenset[TableName]
    candidates: Candidates
    incomplete: PublicationNeededError | None
    """Why the publication cannot be used; None if it can."""
    refusals: tuple[PublicationNeededError, ...]
    """Why a run must not start: named tables do not exist, or cannot be replicated."""
    warnings: tuple[str, ...]
    """One sentence with a remedy for each table that is not replicated."""
    sends_generated: bool
    """Whether it sends stored generated columns, or will be created so, as a table needs it."""
    is_on_standby: bool
    may_alter: bool
    """Whether the role owns the publication."""

    def includes(self, table: TableName) -> bool:
        return table not in self.excluded and (not self.wanted or table in self.wanted)

    @property
    def tables_to_add(self) -> tuple[TableName, ...]:
        return tuple(table for table in self.candidates.publishable if table not in self.tables) if self.is_ours else ()

    def refusal(self, table: TableName) -> str | None:
        """Return why the server would refuse to add a table to the publication; None if it would not."""
        if self.is_on_standby:
            return "a standby cannot publish tables, its primary can"
        denial = "this role may not publish the tables"
        if not self.may_alter:
            return f"{denial} (must be owner of publication {self.name})"
        return f"{denial} (must be owner of table {table})" if table in self.candidates.not_owned else None

    def create_statements(self, major: int) -> list[sql.Composed]:
        options = ["publish_via_partition_root = true"] if major >= 13 else []
        options += ["publish_generated_columns = stored"] if self.sends_generated else []
        tables = self.candidates.publishable
        of_tables = sql.SQL(" FOR TABLE ") + table_list(tables) if tables else sql.SQL("")
        with_options = sql.SQL(f" WITH ({', '.join(options)})" if options else "")
        return [
            sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(self.name)) + of_tables + with_options,
            sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(self.name), sql.Literal(_MARK)),
        ]


def query_plan(
    connection: Connection, name: str, settings: ReplicateSettings, *, at_start: bool = True
) -> PublicationPlan:
    """`connection` needs a lock_timeout. `at_start`: an excluded table that does not exist is an error."""
    wanted, excluded = TableSelection.of(settings.tables), TableSelection.of(settings.exclude_tables)
    major = server_major(connection)
    of_version = {
        "truncate": "pubtruncate" if major >= 11 else "true",
        "via_root": "pubviaroot" if major >= 13 else "true",
        "generated": "pubgencols = 's'" if major >= _SENDS_GENERATED else "false",
    }
    row = connection.execute(_FOUND.format(**of_version).encode(), (_MARK, name)).fetchone()
    exists, is_ours = row is not None, row is None or bool(row[-1])
    published = {table.name: table for table in query_listed_tables(connection, (name,))} if exists else {}
    sends_generated = row is not None and bool(row[5])

    def query() -> Candidates:
        return query_candidates(connection, name, wanted, excluded, published, sends_generated=sends_generated)

    candidates = query()
    if not exists and major >= _SENDS_GENERATED and any(candidate.needs_generated for candidate in candidates.left_out):
        sends_generated = True
        candidates = query()
    warnings = candidates.warnings
    if not is_ours:
        warnings = [text for table, text in candidates.incomplete.items() if table in published]
    refusals = []
    if unknown := _excluded_problems(connection, sorted(excluded.names) if at_start else (), published):
        refusals.append(PublicationNeededError(f"excluded names are no tables that could be replicated: {unknown}"))
    missing = [table for table in wanted.names if table not in candidates.publishable and table not in published]
    if missing and is_ours:
        warnings += [reason for table in missing for reason in query_unpublishable_reasons(connection, table)]
        refusals.append(PublicationNeededError("; ".join(warnings)))
    elif missing:
        refusals.append(missing_tables_error(name, missing, warnings))
    for pattern in wanted.patterns:
        if not any(matches(pattern, table) for table in (*candidates.publishable, *published)):
            refusals.append(PublicationNeededError("; ".join([f"no table can be replicated as {pattern}", *warnings])))
    return PublicationPlan(
        name=name,
        exists=exists,
        is_ours=is_ours,
        wanted=wanted,
        excluded=excluded,
        tables=frozenset(published),
        candidates=candidates,
        incomplete=None if row is None else _incomplete_error(connection, name, row[:4], row[4] or not is_ours),
        refusals=tuple(refusals),
        warnings=tuple(warnings),
        sends_generated=sends_generated,
        is_on_standby=row is not None and row[6],
        may_alter=row is None or row[7],
    )


def missing_tables_error(name: str, tables: Collection[TableName], warnings: Sequence[str]) -> PublicationNeededError:
    return PublicationNeededError(
        f"the publication {name} has no table {', '.join(map(str, sorted(tables)))}: "
        + ("; ".join(warnings) or "name tables that it has, or add them to it")
    )


def _excluded_problems(
    connection: Connection, excluded: Sequence[TableName], published: dict[TableName, PublishedTable]
) -> str:
    tops = {table.name for table in published.values() if table.under is None}
    return "; ".join(
        reason for table in excluded if table not in tops for reason in query_unpublishable_reasons(connection, table)
    )


def _incomplete_error(
    connection: Connection, name: str, actions: Sequence[bool], via_root: bool
) -> PublicationNeededError | None:
    left_out = [action for action, is_published in zip(_ACTIONS, actions, strict=True) if not is_published]
    if not left_out and via_root:
        return None
    fault, option = "sends partitions as tables of their own", sql.SQL("publish_via_partition_root = true").format()
    if left_out:
        fault = f"leaves out {', '.join(left_out)}"
        option = sql.SQL("publish = {}").format(sql.Literal(", ".join(_ACTIONS)))
    change = sql.SQL("ALTER PUBLICATION {} SET ({})").format(sql.Identifier(name), option).as_string(connection)
    error = PublicationNeededError(f"the publication {name} {fault}: run {change}", code="PUBLICATION_INCOMPLETE")
    error.statements = (change,)
    return error


def is_ours(connection: Connection, name: str) -> bool:
    query = "SELECT obj_description(oid, 'pg_publication') = %s FROM pg_publication WHERE pubname = %s"
    return bool(query_scalar(connection, query, _MARK, name))


def add_statement(name: str, tables: Sequence[TableName]) -> sql.Composed:
    return sql.SQL("ALTER PUBLICATION {} ADD TABLE ").format(sql.Identifier(name)) + table_list(tables)


def table_list(tables: Sequence[TableName]) -> sql.Composed:
    # Without ONLY, PostgreSQL would publish inheriting tables too.
    return sql.SQL(", ").join(sql.SQL("ONLY ") + sql.Identifier(*table) for table in tables)
