"""The loop of `logicalrep replicate`: receive, apply, checkpoint, acknowledge; tables load meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from logicalrep.pipeline.apply.splitting import by_table
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.receiving import ChangeReceiver, Changes, last_commit
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.requests import read_paused_since, refuse_paused, take_requests
from logicalrep.pipeline.state.state import State, States, TableState
from logicalrep.pipeline.tables import TableManager
from logicalrep.postgres.slots.slot import query_sent_end
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_CHECKPOINT_AGAIN = 5.0
"""The seconds between two checkpoints while nothing changes."""
_TIME_AGAIN = 60.0
"""The seconds between two checkpoints of the time at which the tables were up to date, while nothing else changes."""
_MOST_WAITING = 64 << 20
"""The bytes of changes that may wait for the catalog while more are taken."""
_CHECK_AGAIN = 1.0
"""The seconds between two checks whether the destination is paused."""
_SAY_AGAIN = 60.0
"""The seconds between two sentences about a paused destination."""


class TablesStoppedError(LogicalRepError, RuntimeError):
    """Tables that are stopped; the others are up to date."""

    code = "TABLES_STOPPED"


class Loop:
    """Batches one after another; loads go on beside them."""

    def __init__(
        self,
        context: RunContext,
        receiver: ChangeReceiver,
        catalog: Catalog,
        tables: TableManager,
        states: States,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Take what is connected and prepared; nothing happens before `run`."""
        self._settings = context.settings
        self._storage = context.storage
        self._slot = context.identity.slot
        self._observer = context.observer
        self._receiver = receiver
        self._catalog = catalog
        self._pool = pool
        self._patience = context.patience
        self._tables = tables
        self._stop = context.stop
        self._states = states
        before = states.last
        self._saved = self._taken = before.lsn
        self._saved_tables: dict[str, TableState] = {}
        self._commit_timestamp = before.commit_timestamp
        self._caught_up = before.caught_up
        self._checkpoint_at = self._written_at = self._batch_at = 0.0
        self._paused_since: str | None = None
        self._pause_checked_at = self._said_paused = -_SAY_AGAIN

    def run(self) -> None:
        """Run until `stop` is set, or all is up to date."""
        target = None
        if self._settings.once:
            target = self._catalog.run(lambda connection: query_sent_end(connection, self._slot))
        is_known = False
        while not self._stop.is_set():
            self._catalog.refuse_synchronous()
            if self._is_paused():
                continue
            if not is_known or self._catalog.is_due or self._tables.wait_for(self._saved):
                is_known = self._refresh_catalog() or is_known
            if not is_known:
                # The changes of a table that nobody knows would count as those before its load.
                self._receiver.wait(0)
                self._stop.wait(0.2)
                continue
            self._tables.step()
            self._tables.say_loads()
            self._tables.tidy(is_busy=self._receiver.has_changes)
            pause = self._batch_at + self._settings.every - time.monotonic()
            if self._tables.waiting_bytes:
                # No more is taken once much waits: the server holds the rest.
                is_much = self._tables.waiting_bytes > _MOST_WAITING
                self._stop.wait(0.05)
                self._apply_batch(Changes((), self._taken) if is_much else self._receiver.take())
            elif not self._receiver.wait(0.1):
                if target is not None or self._is_awaited or time.monotonic() - self._checkpoint_at > _CHECKPOINT_AGAIN:
                    self._apply_batch(self._receiver.take())
            elif pause <= 0 or target is not None or self._is_awaited or self._receiver.is_full:
                self._apply_batch(self._receiver.take())
            else:
                self._stop.wait(min(pause, 0.1))
            if target is not None and self._saved >= target and self._tables.are_up_to_date:
                # Things that the stream does not report may have changed since the last refresh.
                if not self._refresh_catalog() or not self._tables.are_up_to_date:
                    continue
                self._tables.finish()
                self._save_checkpoint(self._saved)
                self._refuse_stopped()
                return

    @property
    def _is_awaited(self) -> bool:
        """Whether a load waits for the changes that are there to be acknowledged."""
        return self._receiver.is_to_begin_again

    def _is_paused(self) -> bool:
        """Return whether the destination is paused, after a moment if it is; the receiver goes on to answer the server.

        Raises PausedError with `once`: nothing may come to the tables for long.
        """
        now = time.monotonic()
        if now - self._pause_checked_at >= _CHECK_AGAIN:
            self._pause_checked_at = now
            before, self._paused_since = (
                self._paused_since,
                self._patience.run(lambda: read_paused_since(self._storage)),
            )
            if self._paused_since is None and before is not None:
                self._observer.on_waiting("goes on, as the destination is not paused any more")
                self._said_paused = -_SAY_AGAIN
        if self._paused_since is None:
            return False
        if self._settings.once:
            refuse_paused(self._storage)
        if now - self._said_paused >= _SAY_AGAIN:
            self._said_paused = now
            self._observer.on_waiting(
                f"paused since {self._paused_since}, until logicalrep resume; {self._catalog.describe_retained()}"
            )
        # An error of the receiver ends a paused process too.
        self._receiver.wait(0)
        self._stop.wait(0.2)
        return True

    def _refresh_catalog(self) -> bool:
        """Look at the server's tables; return whether that was possible."""
        self._patience.run(self._states.check)
        timeline, found = self._receiver.timeline, self._catalog.query_tables()
        if found is None:
            return False
        self._tables.follow(found, 0 if timeline is None else timeline.id, self._saved)
        # At the first look an earlier process may have left some, and the tables are known only now.
        for path, request in take_requests(self._storage):
            self._tables.load_named(request.resync)
            if request.skip is not None:
                if not self._tables.skip(*request.skip):
                    continue
                # A later process goes on with the changes after it.
                self._save_checkpoint(self._saved)
            self._storage.delete(path)
        return True

    def _apply_batch(self, changes: Changes) -> None:
        """Apply changes, save a checkpoint, and acknowledge them, in this order."""
        began = time.monotonic()
        self._taken = changes.end
        writes = [
            (ready, self._pool.submit(self._tables.write, ready, changes.end))
            for ready in self._tables.take_ready(by_table(changes.batches))
        ]
        count = 0
        for ready, future in writes:
            count += self._tables.settle(ready, future)
            committed = last_commit(ready.rows.to_batches())
            if committed is not None and ready.table.stopped is None:
                ready.table.committed = committed.isoformat()
        committed = changes.commit_timestamp
        if committed is not None:
            self._commit_timestamp = committed.isoformat()
        self._save_checkpoint(self._tables.written_up_to(changes.end))
        self._receiver.acknowledge(self._saved)
        if writes:
            self._batch_at = began
            lag = max(self._receiver.received - changes.end, 0)
            self._observer.on_batch_applied(count, len(writes), time.monotonic() - began, lag, committed)

    def _save_checkpoint(self, end: Lsn) -> None:
        """Write how far the tables are, if anything is new."""
        lsn = max(self._saved, end)
        states = self._tables.states(Lsn(lsn - 1))
        caught_up = self._catalog.caught_up(lsn)
        if caught_up is not None:
            self._caught_up = caught_up.isoformat()
        now = time.monotonic()
        if lsn > self._saved or states != self._saved_tables or now - self._written_at > _TIME_AGAIN:
            state = State(lsn, self._commit_timestamp, self._caught_up, states)
            self._patience.run(lambda: self._states.write(state))
            self._saved, self._saved_tables, self._written_at = lsn, states, now
        self._observer.on_checkpoint(lsn, {name: table.figures for name, table in states.items()})
        self._checkpoint_at = time.monotonic()

    def _refuse_stopped(self) -> None:
        stopped = self._tables.stopped
        if stopped:
            raise TablesStoppedError("; ".join(f"{name}: {reason}" for name, reason in stopped.items()))
