"""The connection through which the loop looks at the server: the publication, the tables' definitions, the slot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar

import psycopg

from logicalrep.observe.lag import Looks
from logicalrep.postgres.retries import Waiting, retried
from logicalrep.postgres.slots import Connection, Slot, server_time, the_slot, wal_head
from logicalrep.postgres.synchronous import refuse_synchronous
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.load.definitions import Definition, definitions, described
from logicalrep.tables.load.publishing import ensure_publication
from logicalrep.tables.report import Report
from logicalrep.tables.schema.differences import Difference, difference, explains
from logicalrep.tables.schema.evolution import Evolution, evolution
from logicalrep.tables.schema.shapes import Shape
from logicalrep.tables.settings import ReplicateSettings
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

_PAUSE = 5.0
"""The seconds between two looks."""
_PATIENCE_FOR_LOCKS = "1s"
"""The longest wait for a table that another session alters: the loop waits meanwhile."""

_NAME = """
SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE pg_class.oid = %s
"""
_PARTITIONS = """
WITH RECURSIVE parts AS (
    SELECT inhrelid AS oid, inhparent AS top FROM pg_inherits WHERE inhparent = ANY(%s)
    UNION ALL SELECT inhrelid, top FROM parts JOIN pg_inherits ON inhparent = parts.oid
)
SELECT parts.oid, top FROM parts JOIN pg_class AS class ON class.oid = parts.oid AND class.relispartition
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A table on the server."""

    oid: int
    definition: Definition
    head: Lsn
    """The end of the WAL after the definition was read."""


class Watch:
    """A connection that survives the server's restarts."""

    def __init__(
        self,
        settings: ReplicateSettings,
        publication: str,
        slot: str,
        report: Report,
        said: Iterable[str],
        waiting: Waiting,
    ) -> None:
        """Take the server, the publication, the slot, and the warnings that are not to be repeated.

        `waiting` says how the server is waited for while it is away.
        """
        self._settings = settings
        self._publication = publication
        self._slot = slot
        self._report = report
        self._waiting = waiting
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._next = self._next_standby = 0.0
        self._said = set(said)
        self._looks = Looks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    @property
    def is_due(self) -> bool:
        """Whether it is time for another look."""
        return time.monotonic() >= self._next

    def look_soon(self) -> None:
        """Make the next look due."""
        self._next = 0.0

    def tables(self) -> dict[TableName, Found] | None:
        """Return the tables to replicate by their names; new ones are added to a publication of ours.

        Returns None while another session alters a table: what waited for it would hold up the others.
        """
        self._next = time.monotonic() + _PAUSE
        try:
            return self.run(self._tables)
        except psycopg.errors.LockNotAvailable:
            self._warn(
                "another session has locked a table, as ALTER TABLE does: whether tables are new or changed is found "
                "out once it has ended"
            )
            return None

    def refuse_synchronous(self) -> None:
        """Raise SynchronousStandbyError if each COMMIT waits for the slot's walsender; look now and then."""
        if time.monotonic() >= self._next_standby:
            self._next_standby = time.monotonic() + _PAUSE
            if warning := self.run(lambda connection: refuse_synchronous(connection, self._slot)):
                self._warn(warning)

    def caught_up(self, lsn: Lsn) -> datetime | None:
        """Return the server's time at the last look by which all that had committed is before an LSN."""
        return self._looks.caught_up(lsn)

    def retained(self) -> str:
        """Say how much WAL the slot retains, and how much more it may."""
        slot = self.slot()
        text = f"the slot retains {slot.retained_bytes >> 20:,} MiB of WAL"
        if slot.wal_status is None:
            return text
        left = slot.safe_wal_size
        return f"{text}, with {'no bound' if left is None else f'{left >> 20:,} MiB left of max_slot_wal_keep_size'}"

    def slot(self) -> Slot:
        """Return the slot as it is. Raises SlotError if there is none, or it is lost."""
        return self.run(lambda connection: the_slot(connection, self._slot))

    def run(self, action: Callable[[Connection], _Result]) -> _Result:
        """Return the result of an action on the connection; try again while the server is away."""
        # Tables that wait for the place ask from threads of their own.
        with self._lock:
            return retried(lambda: action(self._connected()), self._waiting, self._close)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._settings.connection.connect()
            self._connection.execute(f"SET lock_timeout = '{_PATIENCE_FOR_LOCKS}'".encode())
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def difference(self, copied: Definition, found: Found) -> Difference | None:
        """Return how a table differs from its copy; None if the copy can be kept."""
        return self.run(lambda connection: difference(connection, copied, found.definition))

    def explains(self, copied: Definition, found: Definition, truncates: Collection[int]) -> bool:
        """Return whether truncates, by their transactions' ids, are why a table's files are others."""
        return self.run(lambda connection: explains(connection, copied, found, truncates))

    def described(self, oid: int) -> ReplicatedTable | None:
        """Return a table as it is; None if there is none, or another session alters it."""
        try:
            return self.run(lambda connection: self._described(connection, oid))
        except psycopg.errors.LockNotAvailable:
            return None

    def partitions_of(self, oids: Collection[int]) -> Mapping[int, int]:
        """Return the partitions of tables, of all levels, by their OIDs, each with the OID of its table."""
        return self.run(lambda connection: dict(connection.execute(_PARTITIONS, (list(oids),)).fetchall()))

    def evolution(
        self, copied: ReplicatedTable, now: ReplicatedTable, shape: Shape | None, since: int | None
    ) -> Evolution | None:
        """Return how a table's columns changed; None if that cannot be told, or the server wrote its rows anew."""
        return self.run(lambda connection: evolution(connection, copied, now, shape, since))

    def _described(self, connection: Connection, oid: int) -> ReplicatedTable | None:
        row = connection.execute(_NAME, (oid,)).fetchone()
        if row is None:
            return None
        name = TableName(*row)
        return described(connection, name, (self._publication,), self._settings.of(name))

    def _tables(self, connection: Connection) -> dict[TableName, Found]:
        published = ensure_publication(connection, self._publication, self._settings.tables, at_start=False)
        for warning in published.warnings:
            self._warn(warning)
        # One listing tells the names: a table may be renamed before the next query.
        wanted = {table.oid: table for table in published.listed}
        columns = {oid: table.columns for oid, table in wanted.items()}
        settings = {oid: self._settings.of(table.name) for oid, table in wanted.items()}
        now = definitions(connection, columns, (self._publication,), settings)
        time_of_look, head = server_time(connection), wal_head(connection)
        self._looks.seen(time_of_look, head)
        found = {table.name: Found(oid, now[oid], head) for oid, table in wanted.items() if oid in now}
        for name in [name for name, each in found.items() if not each.definition.columns]:
            self._warn(f"{name} is not replicated, as it has no columns to be written; it is once it has one")
            del found[name]
        return found

    def _warn(self, warning: str) -> None:
        if warning not in self._said:
            self._said.add(warning)
            self._report.warning(warning)
