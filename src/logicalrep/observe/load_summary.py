"""The progress of the loads of all tables, in one sentence."""

from __future__ import annotations

import threading
import time

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


class LoadSummary(Observer):
    """Counts tables and rows from the first needed load until no load is left; safe for several threads.

    The time that is left is estimated from the rows since the first report, once each table in progress has reported.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: set[TableName] = set()
        self._copied: dict[TableName, tuple[int, int]] = {}
        self._loaded: set[TableName] = set()
        self._first: tuple[float, int] | None = None
        """The time of the first report, and the rows until then; None before it."""
        self._end: str | None = None

    def on_event(self, event: RunEvent) -> None:
        with self._lock:
            was_over = self.is_over
            match event:
                case LoadsNeeded(tables):
                    if not self._waiting:
                        self._copied, self._loaded, self._first = {}, set(), None
                    self._waiting.update(tables)
                    self._loaded -= self._waiting
                case CopyStarted(table, estimate):
                    self._waiting.add(table)
                    self._copied[table] = 0, estimate
                case RowsCopied(table, rows) if table in self._copied:
                    copied, estimate = self._copied[table]
                    self._copied[table] = copied + rows, estimate
                    if self._first is None:
                        self._first = time.monotonic(), self._rows
                case CopyEnded(table=table):
                    self._waiting.discard(table)
                    self._loaded.add(table)
                case TableStopped(table):
                    self._waiting.discard(table)
                    self._copied.pop(table, None)
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

    @property
    def _rows(self) -> int:
        return sum(rows for rows, _ in self._copied.values())

    def text(self) -> str:
        """Return the sentence, such as `12 of 40 tables loaded, 3.1 of 20.0 million rows, about 4 min`."""
        with self._lock:
            count = len(self._waiting) + len(self._loaded)
            text = f"{len(self._loaded)} of {count} table{'' if count == 1 else 's'} loaded"
            rows = self._rows
            total = sum(
                max(rows, estimate) if table in self._waiting else rows
                for table, (rows, estimate) in self._copied.items()
            )
            if total:
                has_all = self._waiting <= self._copied.keys()
                text += f", {_rows(rows, total)} of {_rows(total)} rows{'' if has_all else ' or more'}"
            if self._first is None or not all(self._copied.get(table, (0, 0))[0] for table in self._waiting):
                return text
            began, first_rows = self._first
            if rows in (first_rows, total):
                return text
            seconds = (total - rows) * (time.monotonic() - began) / (rows - first_rows)
            return f"{text}, about {_duration(seconds)}"


def _rows(rows: int, like: int | None = None) -> str:
    if (rows if like is None else like) < 1_000_000:
        return f"{rows:,}"
    return f"{rows / 1e6:,.1f}{' million' if like is None else ''}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
