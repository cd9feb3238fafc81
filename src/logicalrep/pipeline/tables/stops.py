"""Stopping one table, with the reason and the remedy."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from logicalrep.observe.events import TableStopped
from logicalrep.pipeline.errors import RefusedCommit
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.phases import Copy, Held, Stopped
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter


@dataclass(slots=True)
class TableStops:
    context: RunContext
    writer: TableWriter
    buffers: TableBuffers

    def hold(self, table: Table, copy: Copy, refused: RefusedCommit) -> None:
        """Stop a table at a commit that it refused: changes from that commit on are buffered."""
        text = (
            f"{refused}; its changes from that commit on are buffered, for {self.context.settings.keep:g} hours: "
            f"{_resync(table)}, which reloads the table, or logicalrep skip {table.name} {refused.lsn}, which skips "
            "that commit's changes of the table"
        )
        self._move(table, Held(text, copy, self.buffers.hold(table, refused.lsn)))

    def stop(self, table: Table, reason: str) -> None:
        """Stop a table and drop its changes from now on: only a load lets it resume."""
        table.end_work()
        pending = self.buffers.release_hold(table) if table.is_refused else table.pending
        text = f"{reason}; its changes are not buffered: {_resync(table)}, which reloads the table"
        self._move(table, Stopped(text, table.copy, pending))

    def expire(self, tables: Iterable[Table]) -> None:
        """Stop buffering the changes of tables that refused a commit longer ago than the setting `keep`."""
        keep = self.context.settings.keep
        for table in tables:
            held = table.phase.pending if isinstance(table.phase, Held) else None
            if held is not None and held.since < time.time() - keep * 3600:
                self.stop(table, f"the commit {held.refused} was refused {keep:g} hours ago")

    def _move(self, table: Table, phase: Held | Stopped) -> None:
        previous_reason = table.stopped
        table.move(phase)
        if phase.reason != previous_reason:
            self.context.observer.on_event(TableStopped(table.name, phase.reason))
            self.writer.write_stopped(table)


def _resync(table: Table) -> str:
    return f"once the cause is fixed, run logicalrep resync {table.name} with the same --dsn and --to"
