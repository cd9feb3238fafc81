"""The tables that stop: each alone, with the reason and the remedy in words."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from logicalrep.pipeline.errors import RefusedCommit
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.lifecycle import Phase
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter


@dataclass(slots=True)
class TableStops:
    """Stops tables, and says so once for each reason."""

    context: RunContext
    writer: TableWriter
    buffers: TableBuffers

    def hold(self, table: Table, refused: RefusedCommit) -> None:
        """Stop a table at a commit that it refused: its changes are buffered from it on."""
        self.buffers.hold(table, refused.lsn)
        self._move(
            table,
            Phase.HELD,
            f"{refused}; its changes from that commit on are buffered, for {self.context.settings.keep:g} hours: "
            f"{_resync(table)}, which loads it again, or logicalrep skip {table.name} {refused.lsn}, which leaves out "
            "what that commit changes of it",
        )

    def stop(self, table: Table, reason: str) -> None:
        """Stop a table whose changes are dropped from now on, so that it goes on with a load only."""
        if table.is_refused:
            self.buffers.hold_no_more(table)
        self._move(
            table,
            Phase.STOPPED,
            f"{reason}; its changes are not buffered: {_resync(table)}, which loads it again",
        )

    def expire(self, tables: Iterable[Table]) -> None:
        """Stop to buffer the changes of tables that refused a commit too long ago."""
        keep = self.context.settings.keep
        for table in tables:
            pending_load = table.pending_load if table.phase is Phase.HELD else None
            if (
                pending_load is not None
                and pending_load.since is not None
                and pending_load.since < time.time() - keep * 3600
            ):
                self.stop(table, f"the commit {pending_load.refused} was refused {keep:g} hours ago")

    def _move(self, table: Table, to: Phase, text: str) -> None:
        said = table.stopped
        table.move(to, text)
        if text != said:
            self.context.observer.on_table_stopped(table.name, text)
            self.writer.write_stopped(table)


def _resync(table: Table) -> str:
    return f"once that is mended, run logicalrep resync {table.name} with the same --dsn and --to"
