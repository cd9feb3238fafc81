"""The observers of what `logicalrep replicate` does, for people to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from logicalrep.observe.figures import ErrorKind, TableFigures
from logicalrep.transactions.table_names import TableName


class Observer:
    """Takes what happens, in calls of several threads; what a subclass does not take is dropped."""

    def on_loads_needed(self, tables: Sequence[TableName], reason: str) -> None:
        """Note that tables are to be loaded for one reason, in a few words, such as `new table`."""

    def on_load_begun(self, table: TableName, rows: int) -> None:
        """Note that a load has begun, of about this number of rows."""

    def on_rows_copied(self, table: TableName, rows: int) -> None:
        """Note that some more rows are copied."""

    def on_load_ended(self, table: TableName, rows: int, seconds: float) -> None:
        """Note that a load has ended."""

    def on_batch_applied(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Note that a batch is applied.

        Args:
            changes: the number of changes.
            tables: the number of tables.
            seconds: the time it took.
            lag: the bytes of WAL that the server has sent beyond it.
            committed: the time of its last commit, in UTC.
        """

    def on_checkpoint(self, lsn: int, tables: Mapping[str, TableFigures]) -> None:
        """Take that a checkpoint is saved: the destination has every commit before an LSN, and how its tables stand."""

    def on_error(self, kind: ErrorKind) -> None:
        """Count an error that does not end the command."""

    def on_table_stopped(self, table: TableName, reason: str) -> None:
        """Note that a table is stopped from now on."""

    def on_schema_changed(self, table: TableName, changes: Sequence[str]) -> None:
        """Note that a table at the destination has other columns, or another key, from now on: a few words for each."""

    def on_listening(self, address: str) -> None:
        """Note the address of the page and of the metrics."""

    def on_prepared(self, slot: str) -> None:
        """Take that the destination and the server are ready, and the slot's name."""

    def on_step(self, text: str) -> None:
        """Note what the run does before it goes on, in a few words; it ends with the next one, or with tables' work."""

    def on_going_on(self, tables: int, lsn: int) -> None:
        """Note that a run goes on with tables that have every commit before an LSN."""

    def on_warning_solved(self, text: str) -> None:
        """Note that the reason of a warning is gone."""

    def on_waiting(self, text: str) -> None:
        """Note what the work waits for."""

    def on_warning(self, text: str) -> None:
        """Note what a person should know."""

    def on_ended(self, error: Exception, is_meant: bool) -> None:
        """Take the error that ends the run; `is_meant` if somebody wanted it so."""


_MOST_NAMES = 5


def listed(tables: Sequence[TableName]) -> str:
    """Return the names of tables for a line: the first few of many.

    Example:
        >>> listed([TableName("public", f"t{number}") for number in range(300)])
        'public.t0, public.t1, public.t2, public.t3, public.t4 and 295 more'
    """
    more = len(tables) - _MOST_NAMES
    return ", ".join(map(str, tables[:_MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")


class Observers(Observer):
    """A receiver that passes all that it gets on to others."""

    def __init__(self, *observers: Observer) -> None:
        """Take the others."""
        for name in vars(Observer):
            if not name.startswith("_"):
                setattr(self, name, partial(_pass_on, [getattr(observer, name) for observer in observers]))


def _pass_on(methods: Sequence[Callable[..., None]], *what: object) -> None:
    for method in methods:
        method(*what)
