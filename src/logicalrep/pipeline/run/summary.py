"""The result of a call of `replicate`."""

from __future__ import annotations

import time
from dataclasses import dataclass

from logicalrep.observe.events import BatchApplied, CopyEnded, RunEvent
from logicalrep.observe.figures import Standing
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.state.state import State
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The work of a call of `replicate`, and the state of the destination afterwards.

    Example:
        >>> logicalrep.replicate("dbname=shop", "./lake", once=True)
        RunSummary(tables=3, stopped=(), loaded_rows=6010, changes=0, lsn=Lsn('0/1A2B3C8'), seconds=4.2)
    """

    tables: int
    """The number of replicated tables of the destination."""
    stopped: tuple[str, ...]
    """The names of the stopped tables."""
    loaded_rows: int
    """The number of rows that loads have copied."""
    changes: int
    """The number of applied changes."""
    lsn: Lsn
    """The tables have every commit before this LSN."""
    seconds: float
    """The duration of the call, in seconds."""


class SummaryObserver(Observer):
    """Counts the rows and changes of a run; threads that load tables report their rows too."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._loaded_rows: list[int] = []
        self._changes: list[int] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyEnded(rows=rows):
                self._loaded_rows.append(rows)
            case BatchApplied(changes=changes):
                self._changes.append(changes)

    def summary(self, state: State) -> RunSummary:
        return RunSummary(
            tables=len(state.tables),
            stopped=tuple(name for name, table in state.tables.items() if table.state is Standing.STOPPED),
            loaded_rows=sum(self._loaded_rows),
            changes=sum(self._changes),
            lsn=state.lsn,
            seconds=round(time.monotonic() - self._began, 1),
        )
