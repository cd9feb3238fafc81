"""The loop of `logicalrep replicate`: receive, apply, checkpoint, acknowledge, while tables load."""

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


class TablesStoppedError(LogicalRepError, RuntimeError):
    """Tables that are stopped, or whose load waits for a later time; all other tables are up to date."""

    code = "TABLES_STOPPED"


class Loop:
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
        self._taken = self._checkpoints.lsn
        self._began, self._batch_at = time.monotonic(), 0.0
        self._backlog_end = Lsn(0)
        self._knows_tables = False

    def run(self) -> None:
        """Run until `stop` is set, or, with `once`, until all tables are up to date."""
        self._backlog_end = self._query_target()
        target = self._backlog_end if self._settings.once else None
        while not self._stop.is_set():
            self._catalog.refuse_synchronous()
            self._context.engine.check()
            # Changes of a table that is not known yet would count as changes from before its load.
            if self._pause_check.check() or not self._refresh_if_due():
                # The receiver keeps answering the server meanwhile; its error ends this process too.
                self._receiver.wait(0)
                self._stop.wait(0.2)
                continue
            self._tables.step(self._taken)
            self._tables.loads.report_needed()
            self._tables.tidy(is_busy=self._receiver.has_changes)
            self._run_batch(at_once=target is not None)
            if target is not None and self._finish(target):
                return

    def _run_batch(self, *, at_once: bool) -> None:
        """Receive changes, apply them, save a checkpoint, and acknowledge them, in this order."""
        changes = self._receive(at_once=at_once)
        if changes is None or not changes.end:
            # No batch is due, or the slot is not being read yet.
            return
        began = time.monotonic()
        count, tables = self._apply(changes)
        committed = changes.commit_timestamp
        self._save_checkpoint(self._tables.written_up_to(changes.end), committed)
        self._acknowledge()
        if tables:
            self._batch_at = began
            lag = max(self._receiver.received - changes.end, 0)
            self._context.observer.on_event(BatchApplied(count, tables, time.monotonic() - began, lag, committed))

    # The four steps

    def _receive(self, *, at_once: bool) -> Changes | None:
        """Return the next batch, which may be empty; None while none is due; `at_once` does not wait for `every`."""
        if self._tables.waiting_bytes:
            self._stop.wait(0.05)
            # While many bytes wait, no more are taken: the server retains the rest.
            is_much = self._tables.waiting_bytes > self._context.limits.waiting_bytes
            return Changes((), self._taken) if is_much else self._receiver.take()
        has_changes = self._receiver.wait(0.1)
        # A load may wait until received changes are taken or acknowledged.
        is_waited_for = self._receiver.is_renewal_pending or self._tables.waits_for_changes
        at_once = at_once or is_waited_for
        if not has_changes:
            return self._receiver.take() if at_once or self._checkpoints.is_due else None
        if self._gathers and not is_waited_for:
            self._stop.wait(0.05)
            return None
        pause = self._batch_at + max(self._settings.every, self._context.limits.batch_seconds) - time.monotonic()
        if pause <= 0 or at_once or self._receiver.is_full:
            return self._receiver.take()
        self._stop.wait(min(pause, 0.1))
        return None

    @property
    def _gathers(self) -> bool:
        """Whether a batch gathers more of the backlog from before the start: each batch may rewrite whole tables."""
        is_late = time.monotonic() > max(self._batch_at, self._began) + self._context.limits.backlog_seconds
        return self._receiver.is_behind(self._backlog_end) and not (self._receiver.is_full or is_late)

    def _apply(self, changes: Changes) -> tuple[int, int]:
        self._taken = changes.end
        if changes.parts:
            # A process that was suspended after receiving them must not commit while another process owns the slot.
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
        states, caught_up = self._tables.states(Lsn(max(lsn - 1, 0))), self._catalog.caught_up(lsn)
        self._checkpoints.save(
            lsn, states, history=self._receiver.history_before(lsn), caught_up=caught_up, committed=committed
        )
        self._tables.buffers.delete_finished()

    def _acknowledge(self) -> None:
        """Acknowledge the last checkpoint's LSN; nothing else advances the slot."""
        self._receiver.acknowledge(self._checkpoints.lsn)

    # Between batches

    def _query_target(self) -> Lsn:
        return self._catalog.run(lambda connection: query_sent_end(connection, self._context.identity.slot))

    def _refresh_if_due(self) -> bool:
        is_due = self._catalog.is_due or self._tables.is_description_due(self._checkpoints.lsn)
        if is_due or not self._knows_tables:
            self._knows_tables = self._refresh_catalog() or self._knows_tables
        return self._knows_tables

    def _refresh_catalog(self) -> bool:
        self._checkpoints.check_writer()
        timeline, server_tables = self._receiver.timeline, self._catalog.query_tables()
        if server_tables is None:
            return False
        self._tables.follow(server_tables, 0 if timeline is None else timeline.id, self._checkpoints.lsn)
        # Requests may be older than this process; their tables are known from here on.
        for path, request in take_requests(self._context.storage, passing(self._context.observer, WarningIssued)):
            self._tables.load_named(request.resync)
            if request.part is not None:
                # The request is deleted once the part is loaded.
                self._tables.load_part(request.part)
                continue
            if request.skip is not None:
                if not self._tables.skip(*request.skip):
                    continue
                # From this checkpoint on, a later process applies the changes after the skipped commit.
                self._save_checkpoint(self._checkpoints.lsn)
            self._context.storage.delete(path)
        return True

    def _finish(self, target: Lsn) -> bool:
        """Return whether the tables have all commits before `target`, after which the run ends. Raises
        TablesStoppedError if tables are stopped, and PartError if a requested part was not loaded."""
        if self._checkpoints.lsn < target or not self._tables.are_up_to_date:
            return False
        # Facts that the stream does not report may have changed since the last refresh.
        if not self._refresh_catalog():
            return False
        # A load that becomes due during the upkeep does not begin.
        behind = self._tables.behind
        if not self._tables.are_up_to_date:
            return False
        self._tables.finish()
        self._save_checkpoint(self._checkpoints.lsn)
        if behind := behind | self._tables.behind:
            raise TablesStoppedError("; ".join(f"{name}: {reason}" for name, reason in behind.items()))
        if self._tables.loads.refused:
            raise PartError("; ".join(self._tables.loads.refused))
        return True
