"""The loop of `logicalrep replicate`: it applies and acknowledges batches, while other threads load tables."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from logicalrep.arrow.changes.table_changes import by_table
from logicalrep.observe.events import BatchApplied, WarningIssued
from logicalrep.observe.observer import passing
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.operate.pausing import PauseCheck
from logicalrep.pipeline.run.checkpoints import Checkpoints
from logicalrep.pipeline.run.receiving import ChangeReceiver, Changes
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.requests import PartError, take_requests
from logicalrep.pipeline.state.state import States
from logicalrep.pipeline.tables.manager import TableManager
from logicalrep.postgres.slots.slot import query_sent_end
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_IDLE_WAIT = 1.0
"""The seconds that the loop waits for changes while it has no work: with many tables, a turn costs milliseconds."""
_WAIT = 0.1
"""The seconds that the loop waits for changes while tables have work, in this or another thread."""
_STOP_WAIT = 0.25
"""The most seconds until the loop notices that it should stop."""


class TablesStoppedError(LogicalRepError, RuntimeError):
    """Tables that are stopped or postponed at the end of a run with `once`; all other tables are up to date."""

    code = "TABLES_STOPPED"


class Loop:
    """The loop of a run, in one thread: it alone moves tables to other phases, and acknowledges the slot."""

    def __init__(
        self,
        context: RunContext,
        receiver: ChangeReceiver,
        catalog: Catalog,
        tables: TableManager,
        states: States,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._context = context
        self._settings, self._stop = context.settings, context.stop
        self._receiver = receiver
        self._catalog = catalog
        self._tables = tables
        self._pool = pool
        self._checkpoints = Checkpoints(context, states)
        self._pause_check = PauseCheck(context, catalog.describe_retained)
        # Every commit before this LSN was taken from the receiver.
        self._taken = self._checkpoints.lsn
        # When the loop, and the last batch with changes, began.
        self._began, self._batch_began = time.monotonic(), 0.0
        # The least seconds from the start of the last batch to the start of the next.
        self._interval = 0.0
        # The end of the WAL that the server had for the slot when the loop began.
        self._backlog_end = Lsn(0)
        # Whether the catalog was read once, so that the tables are known.
        self._is_refreshed = False
        # Whether no table had upkeep in this turn.
        self._is_tidy = False

    def run(self) -> None:
        """Run until `stop` is set, or, with `once`, until all tables have everything committed before the start.

        Raises:
            TablesStoppedError: with `once`, some tables are stopped or postponed.
            PartError: with `once`, the part of a table that a request names was not loaded.
            NotRegisteredError: with `once`, a catalog that only names tables lacks some tables.
            Exception: an error that concerns more than one table, also of another thread.
        """
        self._backlog_end = self._query_backlog_end()
        target = self._backlog_end if self._settings.once else None
        while not self._stop.is_set():
            self._catalog.check_slot()
            self._context.engine.check()
            # Without a refresh no batch is taken: changes of an unknown table count as part of its later load.
            if self._pause_check.check() or not self._refresh_if_due():
                # The receiver's thread still answers the server; `wait` raises the error that ended the thread.
                self._receiver.wait(0)
                self._stop.wait(0.2)
                continue
            self._tables.step(self._taken)
            self._is_tidy = not self._tables.tidy(is_busy=self._receiver.has_changes)
            self._run_batch(at_once=target is not None)
            if target is not None and self._finish(target):
                return

    def _run_batch(self, *, at_once: bool) -> None:
        """If a batch is due: take its changes, apply them, save a checkpoint, and acknowledge, in this order."""
        changes = self._receive(at_once=at_once)
        if changes is None or not changes.end:
            # No batch is due, or the receiver has no position yet.
            return
        began, processor_began = time.monotonic(), time.process_time()
        count, tables = self._apply(changes)
        committed = changes.commit_timestamp
        self._save_checkpoint(self._tables.written_up_to(changes.end), committed)
        self._acknowledge()
        if tables:
            self._batch_began = began
            self._interval = self._context.limits.batch_interval(time.process_time() - processor_began)
            lag = max(self._receiver.received - changes.end, 0)
            self._context.observer.on_event(BatchApplied(count, tables, time.monotonic() - began, lag, committed))

    # The four steps

    def _receive(self, *, at_once: bool) -> Changes | None:
        """Return the next batch, perhaps without changes, or None if no batch is due; wait for a moment at most.

        `at_once`: take received changes without waiting for the setting `every`.
        """
        # A load may wait until received changes are taken or acknowledged.
        has_waiting_load = self._receiver.is_renewal_pending or self._tables.waits_for_changes
        at_once = at_once or has_waiting_load
        due = self._batch_began + max(self._settings.every, self._interval)
        limits, waiting_bytes = self._context.limits, self._tables.waiting_bytes
        self._receiver.want(0.0 if at_once or waiting_bytes else due)
        if waiting_bytes:
            self._stop.wait(0.05)
            # Changes that wait for the catalog are in memory: at the limit, the rest stays on the server.
            is_full = waiting_bytes > limits.waiting_bytes
            return Changes((), self._taken) if is_full else self._receiver.take()
        is_idle = not at_once and self._is_tidy and self._tables.are_up_to_date
        if not self._wait_for_changes(min(_IDLE_WAIT, limits.checkpoint_seconds) if is_idle else _WAIT):
            return self._receiver.take() if at_once or self._checkpoints.is_due else None
        if self._gathers_backlog and not has_waiting_load:
            self._stop.wait(0.05)
            return None
        pause = due - time.monotonic()
        if pause <= 0 or at_once or self._receiver.is_full:
            return self._receiver.take()
        self._stop.wait(min(pause, 0.1))
        return None

    def _wait_for_changes(self, seconds: float) -> bool:
        """Wait for changes, or until `stop` is set; return whether there are changes."""
        deadline = time.monotonic() + seconds
        while not self._receiver.wait(min(seconds, _STOP_WAIT)):
            seconds = deadline - time.monotonic()
            if seconds <= 0 or self._stop.is_set():
                return False
        return True

    @property
    def _gathers_backlog(self) -> bool:
        """Whether to wait for more of the backlog at the start: fewer batches rewrite large tables fewer times."""
        is_late = time.monotonic() > max(self._batch_began, self._began) + self._context.limits.backlog_seconds
        return self._receiver.is_behind(self._backlog_end) and not (self._receiver.is_full or is_late)

    def _apply(self, changes: Changes) -> tuple[int, int]:
        """Write all tables that have changes, in parallel; return the numbers of written changes and tables."""
        self._taken = changes.end
        if changes.parts:
            # A process that was suspended after receiving changes must not commit while another process owns the slot.
            self._checkpoints.check_writer()
        writes = [
            (ready, self._pool.submit(self._tables.write, ready, changes.end))
            for ready in self._tables.take_ready(by_table(changes.parts))
        ]
        count = 0
        for ready, future in writes:
            count += self._tables.settle(ready, changes.end, future)
            committed = ready.changes.commit_timestamp
            if committed is not None and ready.table.stopped is None:
                ready.table.committed = committed.isoformat()
        return count, len(writes)

    def _save_checkpoint(self, end: Lsn, committed: datetime | None = None) -> None:
        lsn = max(self._checkpoints.lsn, end)
        # A checkpoint covers all commits before its LSN; the state of a table covers all commits up to its LSN.
        states, caught_up = self._tables.states(Lsn(max(lsn - 1, 0))), self._catalog.caught_up(lsn)
        self._checkpoints.save(
            lsn, states, history=self._receiver.history_before(lsn), caught_up=caught_up, committed=committed
        )
        self._tables.buffers.delete_finished()

    def _acknowledge(self) -> None:
        """Acknowledge the last checkpoint's LSN; nothing else advances the slot."""
        self._receiver.acknowledge(self._checkpoints.lsn)

    # Between batches

    def _query_backlog_end(self) -> Lsn:
        return self._catalog.run(lambda connection: query_sent_end(connection, self._context.identity.slot))

    def _refresh_if_due(self) -> bool:
        """Refresh the catalog if that is due; return whether a refresh has ever succeeded, and the tables are known."""
        is_due = self._catalog.is_due or self._tables.is_description_due(self._checkpoints.lsn)
        if is_due or not self._is_refreshed:
            self._is_refreshed = self._refresh_catalog() or self._is_refreshed
        return self._is_refreshed

    def _refresh_catalog(self) -> bool:
        """Bring the tables in line with the catalog, and take operators' requests; return False if another session has
        locked a table."""
        self._checkpoints.check_writer()
        timeline, server_tables = self._receiver.timeline, self._catalog.query_tables()
        if server_tables is None:
            return False
        self._tables.follow(server_tables, 0 if timeline is None else timeline.id, self._checkpoints.lsn)
        # Requests name tables, and some were written before this process: take them only once the tables are known.
        for path, request in take_requests(self._context.storage, passing(self._context.observer, WarningIssued)):
            self._tables.load_named(request.resync)
            if request.part is not None:
                # The request is deleted once the part is loaded.
                self._tables.load_part(request.part)
                continue
            if request.skip is not None:
                if not self._tables.skip(*request.skip):
                    continue
                # This checkpoint lets a later process apply the changes after the skipped commit.
                self._save_checkpoint(self._checkpoints.lsn)
            self._context.storage.delete(path)
        return True

    def _finish(self, target: Lsn) -> bool:
        """Return False while tables lack commits before `target`; else do the upkeep, save a checkpoint, and return
        True. Raises TablesStoppedError, PartError and NotRegisteredError as `run`."""
        if self._checkpoints.lsn < target or not self._tables.are_up_to_date:
            return False
        # Compare with the catalog once more: the stream does not report every change of a table.
        if not self._refresh_catalog():
            return False
        # Read before the upkeep: a load that becomes due meanwhile does not begin, so its table stays behind.
        behind = self._tables.behind
        if not self._tables.are_up_to_date:
            return False
        self._tables.finish()
        self._save_checkpoint(self._checkpoints.lsn)
        if behind := behind | self._tables.behind:
            raise TablesStoppedError("; ".join(f"{name}: {reason}" for name, reason in behind.items()))
        if self._tables.loads.refused:
            raise PartError("; ".join(self._tables.loads.refused))
        self._tables.registrations.finish()
        return True
