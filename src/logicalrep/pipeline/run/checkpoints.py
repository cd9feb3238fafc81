"""The checkpoints of a run: the states of its tables, stored before the slot is advanced."""

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
    """Saves checkpoints. The file is written only if its content changed, or after a while."""

    def __init__(self, context: RunContext, states: States) -> None:
        self._context = context
        self._states = states
        self._tables: Mapping[str, TableState] = {}
        self._committed, self._caught_up = states.last.commit_timestamp, states.last.caught_up
        self._saved_at = self._written_at = 0.0

    @property
    def lsn(self) -> Lsn:
        """The LSN of the last checkpoint: every commit before it is in the tables, or buffered."""
        return self._states.last.lsn

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint is due even without changes."""
        return time.monotonic() - self._saved_at > self._context.limits.checkpoint_seconds

    def check_writer(self) -> None:
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
        """Save that the tables have every commit before an LSN; at `caught_up` every commit on the server was before
        it. Raises StateError if another process has written a checkpoint."""
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
