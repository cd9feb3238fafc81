"""The receiver of what `logicalrep replicate` does, for people to see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from logicalrep.tables.follow.state import TableState
from logicalrep.transactions.table_names import TableName


class Report(Protocol):
    """Takes what happens; calls come from several threads."""

    def loading(self, table: TableName, rows: int) -> None:
        """Note that a load has begun, of about this number of rows."""

    def copied(self, table: TableName, rows: int) -> None:
        """Note that some more rows are copied."""

    def loaded(self, table: TableName, rows: int, seconds: float) -> None:
        """Note that a load has ended."""

    def batch(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Note that a batch is applied.

        Args:
            changes: the number of changes.
            tables: the number of tables.
            seconds: the time it took.
            lag: the bytes of WAL that the server has sent beyond it.
            committed: the time of its last commit, in UTC.
        """

    def noted(self, lsn: int, tables: Mapping[str, TableState]) -> None:
        """Note that the place has every commit before an LSN, and how its tables stand."""

    def stopped(self, table: TableName, reason: str) -> None:
        """Note that a table stands still from now on."""

    def listening(self, address: str) -> None:
        """Note the address of the page and of the metrics."""

    def waiting(self, text: str) -> None:
        """Note what the work waits for."""

    def warning(self, text: str) -> None:
        """Note what a person should know."""


class Quiet:
    """A receiver that drops all that it gets."""

    def loading(self, table: TableName, rows: int) -> None:
        """Drop it."""

    def copied(self, table: TableName, rows: int) -> None:
        """Drop it."""

    def loaded(self, table: TableName, rows: int, seconds: float) -> None:
        """Drop it."""

    def batch(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Drop it."""

    def noted(self, lsn: int, tables: Mapping[str, TableState]) -> None:
        """Drop it."""

    def stopped(self, table: TableName, reason: str) -> None:
        """Drop it."""

    def listening(self, address: str) -> None:
        """Drop it."""

    def waiting(self, text: str) -> None:
        """Drop it."""

    def warning(self, text: str) -> None:
        """Drop it."""


class Several:
    """A receiver that passes all that it gets on to others."""

    def __init__(self, *reports: Report) -> None:
        """Take the others."""
        self._reports = reports

    def loading(self, table: TableName, rows: int) -> None:
        """Pass it on."""
        for report in self._reports:
            report.loading(table, rows)

    def copied(self, table: TableName, rows: int) -> None:
        """Pass it on."""
        for report in self._reports:
            report.copied(table, rows)

    def loaded(self, table: TableName, rows: int, seconds: float) -> None:
        """Pass it on."""
        for report in self._reports:
            report.loaded(table, rows, seconds)

    def batch(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Pass it on."""
        for report in self._reports:
            report.batch(changes, tables, seconds, lag, committed)

    def noted(self, lsn: int, tables: Mapping[str, TableState]) -> None:
        """Pass it on."""
        for report in self._reports:
            report.noted(lsn, tables)

    def stopped(self, table: TableName, reason: str) -> None:
        """Pass it on."""
        for report in self._reports:
            report.stopped(table, reason)

    def listening(self, address: str) -> None:
        """Pass it on."""
        for report in self._reports:
            report.listening(address)

    def waiting(self, text: str) -> None:
        """Pass it on."""
        for report in self._reports:
            report.waiting(text)

    def warning(self, text: str) -> None:
        """Pass it on."""
        for report in self._reports:
            report.warning(text)


__all__ = ["Quiet", "Report", "Several"]
