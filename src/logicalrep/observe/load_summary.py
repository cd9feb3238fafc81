"""The progress of the loads of all tables, in one sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable

from logicalrep.transactions.table_names import TableName


class LoadSummary:
    """Counts the tables that are to be loaded since none was, and their rows. Any thread may call it.

    Example:
        >>> summary = LoadSummary()
        >>> summary.need([TableName("public", "orders")])
        >>> summary.text()
        '0 of 1 table loaded'
    """

    def __init__(self) -> None:
        """Begin with no table."""
        self._lock = threading.Lock()
        self._waiting: set[TableName] = set()
        self._copied: dict[TableName, tuple[int, int]] = {}
        self._loaded: set[TableName] = set()
        self._began = 0.0

    def need(self, tables: Iterable[TableName]) -> None:
        """Count tables that are to be loaded."""
        with self._lock:
            if not self._waiting:
                self._copied, self._loaded = {}, set()
            self._waiting.update(tables)
            self._loaded -= self._waiting

    def begin(self, table: TableName, estimate: int) -> None:
        """Count the rows of a table from now on, of which there are about so many; 0 if that is unknown."""
        with self._lock:
            if not any(rows for rows, _ in self._copied.values()):
                self._began = time.monotonic()
            self._waiting.add(table)
            self._copied[table] = 0, estimate

    def add_rows(self, table: TableName, rows: int) -> None:
        """Count copied rows, unless the table was left out meanwhile."""
        with self._lock:
            if table in self._copied:
                before, estimate = self._copied[table]
                self._copied[table] = before + rows, estimate

    def end(self, table: TableName, *, is_loaded: bool) -> None:
        """Count a table that is loaded, or leave out one that is stopped."""
        with self._lock:
            self._waiting.discard(table)
            if is_loaded:
                self._loaded.add(table)
            else:
                self._copied.pop(table, None)

    def keep(self, loading: Collection[str]) -> None:
        """Count the other tables as loaded: a load may have ended before somebody said that it was needed."""
        with self._lock:
            over = {table for table in self._waiting if str(table) not in loading}
            self._waiting -= over
            self._loaded |= over

    @property
    def is_over(self) -> bool:
        """Whether no table is to be loaded."""
        return not self._waiting

    def text(self) -> str:
        """Return the sentence, such as `12 of 40 tables loaded, 3.1 of 20.0 million rows, about 4 min`."""
        with self._lock:
            count = len(self._waiting) + len(self._loaded)
            text = f"{len(self._loaded)} of {count} table{'' if count == 1 else 's'} loaded"
            rows = sum(rows for rows, _ in self._copied.values())
            total = sum(
                max(rows, estimate) if table in self._waiting else rows
                for table, (rows, estimate) in self._copied.items()
            )
            if not total:
                return text
            if not self._waiting <= self._copied.keys():
                return f"{text}, {_rows(rows, total)} of {_rows(total)} rows or more"
            text += f", {_rows(rows, total)} of {_rows(total)} rows"
            left = (total - rows) * (time.monotonic() - self._began) / rows if rows else 0
            return f"{text}, about {_duration(left)}" if left else text


def _rows(rows: int, like: int | None = None) -> str:
    """Return a number of rows, in millions if it, or the one that it is shown with, is large."""
    if (rows if like is None else like) < 1_000_000:
        return f"{rows:,}"
    return f"{rows / 1e6:,.1f}{' million' if like is None else ''}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
