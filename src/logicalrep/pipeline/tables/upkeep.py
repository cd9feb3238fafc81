"""The merges and the upkeep of stored tables between batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.pipeline.upkeep.background import BackgroundMerges

StoredTables = Callable[[], list[tuple[Table, StoredTable]]]
"""Returns the stored tables of all tables that follow, each with its table."""


class TableUpkeep:
    """The upkeep of a run's tables, for the loop's thread: another thread merges files, and this one commits them."""

    def __init__(
        self,
        context: RunContext,
        writer: TableWriter,
        failures: TableFailures,
        pool: Executor,
        stored_tables: StoredTables,
    ) -> None:
        """Take a pool of which one thread waits for merges."""
        self._stored_tables = stored_tables
        self._settings, self._patience = context.settings, context.patience
        self._writer, self._failures = writer, failures
        self._merges = BackgroundMerges(context.engine, pool)
        self._checked_tables, self._seconds = context.limits.checked_tables, context.limits.upkeep_seconds
        # The index of the first stored table that the next call checks.
        self._turn = 0

    def tidy(self, *, is_busy: bool) -> bool:
        """Commit a finished merge, begin the next, and do upkeep of stored tables for a moment; if busy, only urgent
        upkeep of one.

        Of many tables, each call checks some: they take turns. Returns whether a table had upkeep, or a merge runs.
        """
        self._commit_merge()
        # After the commit: if it fails, its table no longer follows.
        tables = self._stored_tables()
        start = self._turn % max(len(tables), 1)
        checked = (tables[start:] + tables[:start])[: self._checked_tables]
        self._merges.begin(stored for _, stored in checked)
        has_worked, deadline = False, time.monotonic() + (0 if is_busy else self._seconds)
        for self._turn, (table, stored) in enumerate(checked, start + 1):
            if (stored.is_upkeep_urgent if is_busy else stored.is_upkeep_due)(self._settings.keep):
                self._maintain(table, stored)
                has_worked = True
            elif not is_busy and self._writer.update_index(stored):
                has_worked = True
            if has_worked and time.monotonic() >= deadline:
                break
        return has_worked or self._merges.is_running

    def finish(self) -> None:
        """Do all due merges, and the upkeep of tables that would open slowly, before a run with `once` ends."""
        self._commit_merge(wait=True)
        for table, stored in self._stored_tables():
            while self._failures.run(table, partial(self._writer.merge, stored)):
                pass
            if stored.opens_slowly:
                self._maintain(table, stored)

    def _commit_merge(self, *, wait: bool = False) -> None:
        """Commit a finished merge; if batches repeatedly changed its files, merge them in this thread."""
        merge = self._merges.take_finished(wait=wait)
        if merge is None:
            return
        stored = merge.stored
        table = next((table for table, stored_table in self._stored_tables() if stored_table is stored), None)
        if table is None:
            self._patience.run(merge.drop)
            return
        is_committed = self._failures.run(table, partial(self._writer.commit_merge, merge))
        if is_committed is not None and self._merges.record_result(stored, is_committed=is_committed):
            self._failures.run(table, partial(self._writer.merge, stored))

    def _maintain(self, table: Table, stored: StoredTable) -> None:
        self._failures.run(table, partial(self._writer.maintain, stored))
