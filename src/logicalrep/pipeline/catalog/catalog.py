"""The connection that reads the publication, the tables' definitions and the slot from the server's catalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self, TypeVar

import psycopg

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.observe.events import ErrorCounted, WarningIssued, WarningSolved
from logicalrep.observe.lag import WalHeads
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.catalog.definitions import CatalogTable, catalog_snapshot, query_catalog_tables
from logicalrep.pipeline.catalog.emptied_partitions import EMPTIED, Run, WrittenRows
from logicalrep.pipeline.catalog.partitions import query_empty_tables, query_unproven_partitions
from logicalrep.pipeline.catalog.publishing import ensure_publication
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.errors import NeedsResync, NotProvenYetError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.preflight.synchronous import refuse_synchronous
from logicalrep.postgres.retries import LOCKED, Wait
from logicalrep.postgres.server import Connection, query_server_time, query_wal_head
from logicalrep.postgres.sessions.server_connection import ServerConnection
from logicalrep.postgres.slots.slot import Slot, find_slot, query_slot
from logicalrep.postgres.timelines import Timeline, WalPosition, wal_divergence_reason
from logicalrep.postgres.visibility import Visibility, query_moment, query_visibility
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

_LOCK_TIMEOUT = "500ms"
"""Shorter than the default deadlock_timeout: this session gives up before PostgreSQL cancels the other session."""

_PARTITIONS = """
WITH RECURSIVE parts AS (
    SELECT inhrelid AS oid, inhparent AS top FROM pg_inherits WHERE inhparent = ANY(%s)
    UNION ALL SELECT inhrelid, top FROM parts JOIN pg_inherits ON inhparent = parts.oid
)
SELECT parts.oid, top FROM parts JOIN pg_class AS class ON class.oid = parts.oid AND class.relispartition
"""


@dataclass(frozen=True, slots=True)
class ServerTable:
    oid: int
    catalog_table: CatalogTable
    head: Lsn
    """The end of the WAL after the catalog was read."""


@dataclass(frozen=True, slots=True)
class DescribedChanges:
    catalog_table: CatalogTable | None
    """None if the table was dropped."""
    has_all: bool
    """Whether the state includes the transactions of all rows."""


@dataclass(frozen=True, slots=True)
class CatalogRefresh:
    tables: Mapping[int, CatalogTable]
    """The requested tables by their OIDs, without dropped tables."""
    visibility: Visibility
    """The transactions that the state includes."""

    def describe(self, oid: int, changes: TableChanges, *, needs_all: bool = False) -> DescribedChanges | None:
        """Return the description once this state has the messages' transactions (`needs_all`: all rows'); or None."""
        has_all = all(map(self.visibility.sees, changes.xids))
        has_messages = all(self.visibility.sees(relation.xid) for relation in changes.relations)
        is_described = has_all or (has_messages and not needs_all)
        return DescribedChanges(self.tables.get(oid), has_all) if is_described else None


class Catalog:
    def __init__(
        self,
        settings: ReplicateSettings,
        publication: str,
        slot: str,
        observer: Observer,
        issued_warnings: Iterable[str],
        waiting: Wait,
        limits: Limits,
    ) -> None:
        self._settings, self._limits = settings, limits
        self._publication = publication
        self._slot = slot
        self._observer = observer
        self._connection = ServerConnection(
            settings.connection,
            waiting,
            prepare=self._prepare,
            on_failure=lambda: observer.on_event(ErrorCounted("server")),
        )
        self._lock = threading.Lock()
        self._next = self._next_check = 0.0
        self._room_warnings: set[str] = set()
        self._issued, self._table_warnings = set(issued_warnings), set(issued_warnings)
        self._heads = WalHeads()
        # The last refresh, and the transactions that it sees; None if a later refresh may differ.
        self._transactions: str | None = None
        self._server_tables: dict[TableName, ServerTable] = {}
        # When a refresh first saw a table that is not in the publication yet.
        self._new_since: dict[TableName, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def refresh_soon(self) -> None:
        self._next = 0.0

    def query_tables(self) -> dict[TableName, ServerTable] | None:
        """Return the tables to replicate, after publishing new ones; None while another session alters a table."""
        self._next = time.monotonic() + self._limits.catalog_seconds
        try:
            return self.run(self._query_published)
        except LOCKED:
            self._warn(
                "another session has locked a table, as ALTER TABLE does: replicate will look for new or changed "
                "tables when that session finishes"
            )
            return None

    def check_slot(self) -> None:
        """Warn if the slot may soon be lost, and raise SynchronousStandbyError if each COMMIT waits for its walsender;
        once per catalog interval."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + self._limits.catalog_seconds
        if warning := self.run(lambda connection: refuse_synchronous(connection, self._slot)):
            self._warn(warning)
        slot = self.run(lambda connection: find_slot(connection, self._slot))
        room_warnings = {warning for warning in (slot and slot.room_warning,) if warning}
        for warning in room_warnings:
            self._warn(warning)
        self._withdraw(self._room_warnings - room_warnings)
        self._room_warnings = room_warnings

    def caught_up(self, lsn: Lsn) -> datetime | None:
        """Return the server's time of the last refresh whose end of the WAL is not after an LSN."""
        return self._heads.caught_up(lsn)

    def describe_retained(self) -> str:
        """Return a sentence about the WAL that the slot retains, and may retain."""
        slot = self.query_slot()
        text = f"the slot retains {slot.retained_bytes >> 20:,} MiB of WAL"
        if slot.wal_status is None:
            return text
        if slot.safe_wal_size is None:
            return f"{text}, with no bound"
        return f"{text}, with {slot.safe_wal_size >> 20:,} MiB left of max_slot_wal_keep_size"

    def query_slot(self) -> Slot:
        """Raises SlotError if it does not exist or is lost."""
        return self.run(lambda connection: query_slot(connection, self._slot))

    def run(self, action: Callable[[Connection], _Result]) -> _Result:
        # Tables that wait for the destination call this in threads of their own.
        with self._lock:
            try:
                return self._connection.run(action)
            except psycopg.errors.CharacterNotInRepertoire:
                # In a SQL_ASCII database a text may become unreadable between two queries.
                return self._connection.run(action)

    def refresh(self, oids: Collection[int]) -> CatalogRefresh:
        """It waits for no lock."""
        return self.run(lambda connection: self._refresh(connection, oids))

    def _refresh(self, connection: Connection, oids: Collection[int]) -> CatalogRefresh:
        with catalog_snapshot(connection):
            visibility = query_visibility(connection)
            return CatalogRefresh(self._query_tables(connection, oids), visibility)

    def _query_tables(self, connection: Connection, oids: Collection[int]) -> dict[int, CatalogTable]:
        return query_catalog_tables(connection, oids, (self._publication,), self._settings.of)

    def unproven_partitions(self, previous_spec: TableSpec, current_spec: TableSpec) -> tuple[int, ...]:
        """Return the new partitions that may have, or may have had, rows from before they were partitions."""
        return self.run(lambda connection: query_unproven_partitions(connection, previous_spec, current_spec))

    def unsent_partitions(self, previous_spec: TableSpec, current_spec: TableSpec) -> tuple[int, ...] | None:
        """Return the new partitions that may still have such rows; None while another session alters one."""
        unproven = self.unproven_partitions(previous_spec, current_spec)
        if not unproven:
            return ()
        try:
            empty = self.run(lambda connection: query_empty_tables(connection, unproven))
        except LOCKED:
            return None
        return tuple(oid for oid in unproven if oid not in empty)

    def prove_rows_stayed(
        self, current_spec: TableSpec, first_messages: Mapping[int, SentRelation], changes: Sequence[Run]
    ) -> None:
        """Raise NeedsResync if a TRUNCATE of a new partition may have removed rows.

        Raises NotProvenYetError while another session locks the partition.
        """
        written = WrittenRows(current_spec, self._publication, first_messages, changes, self._limits.statement_keys)
        try:
            if self.run(written.query_lost):
                raise NeedsResync(EMPTIED)
        except LOCKED:
            raise NotProvenYetError from None

    def query_partitions(self, oids: Collection[int]) -> Mapping[int, int]:
        return self.run(lambda connection: dict(connection.execute(_PARTITIONS, (list(oids),)).fetchall()))

    def divergence_reason(self, lsn: Lsn, read_timeline: Timeline, server_timeline: Timeline) -> str | None:
        """Return why the server's WAL does not continue the WAL that was read up to an LSN; None if it does."""
        # The timeline of a standby is unknown.
        if read_timeline == server_timeline or 0 in (read_timeline.id, server_timeline.id):
            return None
        return self.run(
            lambda _: wal_divergence_reason(self._settings.connection, WalPosition(lsn, read_timeline), server_timeline)
        )

    def _query_published(self, connection: Connection) -> dict[TableName, ServerTable]:
        transactions, refreshed_at, head = query_moment(connection)
        if transactions == self._transactions:
            # No transaction has ended since the last refresh, so that the catalog is the same.
            self._heads.record_end(refreshed_at, head)
            return {name: replace(server_table, head=head) for name, server_table in self._server_tables.items()}
        self._transactions = None
        new_since: dict[TableName, float] = {}

        def may_join(table: TableName) -> bool:
            new_since[table] = self._new_since.get(table, time.monotonic())
            return time.monotonic() - new_since[table] >= self._settings.join_after

        published = ensure_publication(connection, self._publication, self._settings, at_start=False, may_join=may_join)
        self._new_since = new_since
        warnings = set(published.warnings)
        with catalog_snapshot(connection):
            # Names and columns come from one snapshot: somebody may rename a table between two queries.
            catalog_tables = self._query_tables(connection, [table.oid for table in published.listed])
        refreshed_at, head = query_server_time(connection), query_wal_head(connection)
        self._heads.record_end(refreshed_at, head)
        for oid in [oid for oid, catalog_table in catalog_tables.items() if not catalog_table.table.relation.columns]:
            name = catalog_tables.pop(oid).table.relation.table
            warnings.add(f"{name} is not replicated, as it has no columns to write: replicate loads it once it has one")
        for warning in sorted(warnings):
            self._warn(warning)
        self._withdraw(self._table_warnings - warnings)
        self._table_warnings = warnings
        self._server_tables = {
            catalog_table.table.relation.table: ServerTable(oid, catalog_table, head)
            for oid, catalog_table in catalog_tables.items()
        }
        if published.is_settled:
            self._transactions = transactions
        return self._server_tables

    def _prepare(self, connection: Connection) -> None:
        # The connection may lead to another server.
        self._transactions = None
        connection.execute(f"SET lock_timeout = '{_LOCK_TIMEOUT}'".encode())

    def _withdraw(self, warnings: set[str]) -> None:
        for warning in sorted(warnings):
            self._issued.discard(warning)
            self._observer.on_event(WarningSolved(warning))

    def _warn(self, warning: str) -> None:
        if warning not in self._issued:
            self._issued.add(warning)
            self._observer.on_event(WarningIssued(warning))
