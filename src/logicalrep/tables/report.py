"""The receiver of what `logicalrep replicate` does, for people to see."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

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

    def waiting(self, text: str) -> None:
        """Drop it."""

    def warning(self, text: str) -> None:
        """Drop it."""


__all__ = ["Quiet", "Report"]
