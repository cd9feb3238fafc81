"""The progress of the loads of all tables, in one sentence."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from logicalrep.observe.events import (
    CheckpointSaved,
    CopyEnded,
    CopyStarted,
    LoadsNeeded,
    RowsCopied,
    RunEvent,
    TableStopped,
)
from logicalrep.observe.observer import Observer
from logicalrep.transactions.table_names import TableName

_MOST_NAMED_TABLES, _SMALL_TABLE = 10, 100_000
"""Of more tables than this, lines do not name the tables with fewer rows."""
_RELIABLE_SHARE = 0.05
"""The share of its rows that each table in progress has copied before the time left is estimated."""


@dataclass
class _CopyClock:
    """A table's rows, and the server's estimate of them: 0 before the first ANALYZE."""

    estimate: int
    started: float
    rows: int = 0

    @property
    def total(self) -> int:
        return max(self.rows, self.estimate)

    @property
    def is_predictable(self) -> bool:
        return self.rows > 0 and self.rows >= self.estimate * _RELIABLE_SHARE and self.estimate > 0

    def rate(self, clock: float) -> float:
        return self.rows / max(clock - self.started, 0.001)


class LoadSummary(Observer):
    """Counts tables and rows from the first needed load until no load is left; safe for several threads.

    Each table has its own clock, from the start of its copy. The time left is the remaining rows at the sum of the
    rates of the tables in progress, as these share sessions. There is no such time while a table waits for its copy,
    has no estimate of its rows, or has copied less than 5 % of them: the reports of other tables say nothing about it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: set[TableName] = set()
        self._copies: dict[TableName, _CopyClock] = {}
        self._loaded: set[TableName] = set()
        self._end: str | None = None

    def on_event(self, event: RunEvent) -> None:
        with self._lock:
            was_over = self.is_over
            match event:
                case LoadsNeeded(tables):
                    if not self._waiting:
                        self._copies, self._loaded = {}, set()
                    self._waiting.update(tables)
                    self._loaded -= self._waiting
                case CopyStarted(table, estimate):
                    self._waiting.add(table)
                    self._copies[table] = _CopyClock(estimate, time.monotonic())
                case RowsCopied(table, rows) if table in self._copies:
                    self._copies[table].rows += rows
                case CopyEnded(table=table):
                    self._waiting.discard(table)
                    self._loaded.add(table)
                case TableStopped(table):
                    self._waiting.discard(table)
                    self._copies.pop(table, None)
                case CheckpointSaved():
                    # A load may end without a copy, for example a refused load of a part.
                    loading = event.loading()
                    ended = {table for table in self._waiting if str(table) not in loading}
                    self._waiting -= ended
                    self._loaded |= ended
            if self.is_over and not was_over and self._has_many:
                self._end = self.text()

    @property
    def is_over(self) -> bool:
        return not self._waiting

    def names(self, event: RunEvent) -> bool:
        """Return whether an event has a line of its own: not if it is about a small table of many."""
        match event:
            case CopyStarted(estimate=rows) | CopyEnded(rows=rows):
                with self._lock:
                    return rows >= _SMALL_TABLE or not self._has_many
        return True

    def take_end(self) -> str | None:
        """Return the sentence about many tables once, after their loads have ended."""
        with self._lock:
            text, self._end = self._end, None
            return text

    @property
    def _has_many(self) -> bool:
        return len(self._waiting) + len(self._loaded) > _MOST_NAMED_TABLES

    def text(self) -> str:
        """Return the sentence, such as `12 of 40 tables loaded, 3.1 of 20.0 million rows, about 4 min`."""
        with self._lock:
            count = len(self._waiting) + len(self._loaded)
            text = f"{len(self._loaded)} of {count} table{'' if count == 1 else 's'} loaded"
            rows = sum(copy.rows for copy in self._copies.values())
            total = sum(copy.total if table in self._waiting else copy.rows for table, copy in self._copies.items())
            if total:
                has_all = self._waiting <= self._copies.keys()
                text += f", {_rows(rows, total)} of {_rows(total)} rows{'' if has_all else ' or more'}"
            seconds = self._seconds_left()
            return f"{text}, about {_duration(seconds)}" if seconds else text

    def _seconds_left(self) -> float | None:
        copies = [self._copies.get(table) for table in self._waiting]
        in_progress = [copy for copy in copies if copy is not None and copy.is_predictable]
        if not in_progress or len(in_progress) < len(copies):
            return None
        clock = time.monotonic()
        return sum(copy.total - copy.rows for copy in in_progress) / sum(copy.rate(clock) for copy in in_progress)


def _rows(rows: int, like: int | None = None) -> str:
    if (rows if like is None else like) < 1_000_000:
        return f"{rows:,}"
    return f"{rows / 1e6:,.1f}{' million' if like is None else ''}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
