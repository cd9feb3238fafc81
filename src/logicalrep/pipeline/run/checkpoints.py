"""The checkpoints of a run: how far its tables are, stored before the slot moves on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

from logicalrep.observe.events import CheckpointSaved
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.past_states import archive_state, latest_commit_time
from logicalrep.pipeline.state.state import State, States
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.postgres.sessions.commit_log import History
from logicalrep_runtime.scalars import Lsn


class Checkpoints:
    """Saves checkpoints, and knows the last one. The file is written only if it has something new."""

    def __init__(self, context: RunContext, states: States) -> None:
        """Take the parts of the run, and the writer of states."""
        self._context = context
        self._states = states
        self._tables: Mapping[str, TableState] = {}
        self._committed, self._caught_up = states.last.commit_timestamp, states.last.caught_up
        self._saved_at = self._written_at = 0.0

    @property
    def lsn(self) -> Lsn:
        """Every commit before it is in the tables, or buffered, as the last checkpoint says."""
        return self._states.last.lsn

    @property
    def is_due(self) -> bool:
        """Whether it is time for another checkpoint, although nothing has changed."""
        return time.monotonic() - self._saved_at > self._context.limits.checkpoint_seconds

    def check_writer(self) -> None:
        """Raise StateError if another process writes to the destination."""
        self._context.patience.run(self._states.check)

    def save(
        self,
        lsn: Lsn,
        tables: Mapping[str, TableState],
        *,
        history: History | None,
        caught_up: datetime | None,
        committed: datetime | None = None,
    ) -> None:
        """Save that the tables have every commit before an LSN, which is not before that of the last checkpoint.

        Args:
            lsn: the LSN.
            tables: how far each table is.
            history: the evidence of the LSN; None if there is none yet.
            caught_up: the server's time by which all that had committed is before the LSN; None if that is unknown.
            committed: the time of the last commit since the last checkpoint, in UTC; None if there is none.

        Raises:
            StateError: another process has written a checkpoint meanwhile.
            StorageError: the destination cannot be written.
        """
        if committed is not None:
            self._committed = committed.isoformat()
        if caught_up is not None:
            self._caught_up = caught_up.isoformat()
        current_time = time.monotonic()
        if (
            lsn > self.lsn
            or tables != self._tables
            or current_time - self._written_at > self._context.limits.idle_checkpoint_seconds
        ):
            end = latest_commit_time(self._states.last, tables, self._committed)
            state = State(lsn, self._committed, self._caught_up, tables, end, history)
            self._context.patience.run(lambda: self._write(state))
            self._tables, self._written_at = tables, current_time
        self._context.observer.on_event(CheckpointSaved(lsn, {name: table.figures for name, table in tables.items()}))
        self._saved_at = time.monotonic()

    def _write(self, state: State) -> None:
        archive_state(self._context.storage, self._states, state, self._context.settings.keep)
        self._states.write(state)
