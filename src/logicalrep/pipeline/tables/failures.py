"""The errors of the work on one table: each reloads that table, or stops it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from logicalrep.observe.events import ErrorCounted
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.catalog.lost_partitions import lost_oids
from logicalrep.pipeline.catalog.old_rows import query_old_rows_fault
from logicalrep.pipeline.catalog.proof import ATTACHED, reason_to_load
from logicalrep.pipeline.errors import MissingRows, NeedsResync, RefusedCommit
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep.pipeline.table_errors import is_table_error, log_unexpected, reason_of
from logicalrep.pipeline.tables.load_coordinator import LoadCoordinator
from logicalrep.pipeline.tables.stops import TableStops
from logicalrep.pipeline.tables.table import Table
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")


@dataclass(slots=True)
class TableFailures:
    """Runs the work on tables, and reloads or stops a table after an error of its own."""

    context: RunContext
    loads: LoadCoordinator
    stops: TableStops
    catalog: Catalog

    def run(self, table: Table, action: Callable[[], _Result], *, end: Lsn | None = None) -> _Result | None:
        """Return an action's result; None after an error of the table alone. Its next copy must have all changes before
        `end`, unless the action has buffered them (MissingRows, RefusedCommit)."""
        try:
            return action()
        except Exception as error:
            if not isinstance(error, DamagedError) and not is_table_error(error):
                raise
            if end is not None and not isinstance(error, MissingRows | RefusedCommit):
                table.least_position = end
            self._load_or_stop(table, error)
        return None

    def _load_or_stop(self, table: Table, error: Exception) -> None:
        if isinstance(error, MissingRows):
            partitions, reason = self._query_unproven_partitions(table), error.description
            has_whole_old = table.copy is not None and table.copy.stored.table.has_whole_old
            if has_whole_old and (fault := self.catalog.run(query_old_rows_fault)):
                reason = f"{reason}: {fault}"
            self.loads.load(table, ATTACHED if partitions else reason, partitions)
        elif isinstance(error, NeedsResync):
            self.loads.load(table, error.description)
        elif isinstance(error, DamagedError):
            self.context.observer.on_event(ErrorCounted("destination"))
            self.loads.load(table, error.description)
        else:
            self._stop_after(table, error)

    def _stop_after(self, table: Table, error: Exception) -> None:
        reason = self._query_change(table) if table.stopped is None else None
        if reason is not None:
            self.loads.load(table, reason)
            return
        log_unexpected(table.name, error)
        self.context.observer.on_event(ErrorCounted("changes"))
        if isinstance(error, RefusedCommit) and table.copy is not None:
            self.stops.hold(table, table.copy, error)
        else:
            self.stops.stop(table, reason_of(error))

    def _query_unproven_partitions(self, table: Table) -> tuple[int, ...]:
        """Return the partitions that may hold a keyed table's missing rows, if they can be loaded alone."""
        copy = table.copy
        catalog_table = None if copy is None else self.catalog.refresh([table.oid]).tables.get(table.oid)
        if copy is None or catalog_table is None:
            return ()
        spec = copy.stored.table
        is_other = reason_to_load(spec, catalog_table) is not None or bool(lost_oids(spec, catalog_table.table))
        if spec.key is None or is_other:
            return ()
        return self.catalog.unproven_partitions(spec, catalog_table.table)

    def _query_change(self, table: Table) -> str | None:
        """Return how the table's definition changed since its copy; None if it did not, or if that is unknown."""
        copy = table.copy
        if copy is None:
            return None
        try:
            catalog_table = self.catalog.refresh([table.oid]).tables.get(table.oid)
        except Exception as error:
            if not is_table_error(error):
                raise
            return None
        copied = copy.stored.table
        if catalog_table is None or catalog_table.table.evidence.columns != copied.evidence.columns:
            return "its columns changed"
        is_same = (catalog_table.table.key, catalog_table.table.has_whole_old) == (copied.key, copied.has_whole_old)
        return None if is_same else "its replica identity changed"
