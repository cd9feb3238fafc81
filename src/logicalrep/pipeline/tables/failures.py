"""The errors of the work on a table: each has the table loaded again, or stops it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from logicalrep.observe.events import ErrorCounted
from logicalrep.pipeline.catalog.catalog import Catalog
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
    """Does the work on tables, and decides what becomes of a table after an error of its own."""

    context: RunContext
    loads: LoadCoordinator
    stops: TableStops
    catalog: Catalog
    """The catalog, which may explain an error."""

    def run(
        self,
        table: Table,
        action: Callable[[], _Result],
        *,
        buffer: Callable[[], object] = lambda: None,
        end: Lsn | None = None,
    ) -> _Result | None:
        """Return an action's result; None after an error of the table alone, which is loaded again or stopped.

        Raises the other errors.

        Args:
            table: the table.
            action: the work on it.
            buffer: called after an error with which the changes of the action are buffered.
            end: the end of these changes: after another error, the next copy has to have all changes before it.
        """
        try:
            return action()
        except Exception as error:
            if not isinstance(error, DamagedError) and not is_table_error(error):
                raise
            if isinstance(error, MissingRows | RefusedCommit):
                buffer()
            elif end is not None:
                table.least_position = end
            self._load_or_stop(table, error)
        return None

    def _load_or_stop(self, table: Table, error: Exception) -> None:
        if isinstance(error, MissingRows):
            partitions = self._query_unproven_partitions(table)
            self.loads.load(table, ATTACHED if partitions else error.description, partitions)
        elif isinstance(error, NeedsResync):
            self.loads.load(table, error.description)
        elif isinstance(error, DamagedError):
            self.context.observer.on_event(ErrorCounted("destination"))
            self.loads.load(table, error.description)
        else:
            self._stop_after(table, error)

    def _stop_after(self, table: Table, error: Exception) -> None:
        """Stop a table, unless another definition explains the error: it is loaded."""
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
        """Return the partitions that may have the rows which a table with a key lacks, if they alone can be loaded."""
        copy = table.copy
        catalog_table = None if copy is None else self.catalog.refresh([table.oid]).tables.get(table.oid)
        if copy is None or catalog_table is None:
            return ()
        spec = copy.stored.table
        if spec.key is None or reason_to_load(spec, catalog_table) is not None:
            return ()
        return self.catalog.unproven_partitions(spec, catalog_table.table)

    def _query_change(self, table: Table) -> str | None:
        """Return what the server has changed of a table since its copy; None for nothing, or if that cannot be told."""
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
