"""The output of `logicalrep replicate`: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from logicalrep.observe.figures import Standing, TableFigures
from logicalrep.observe.lag import lag_seconds
from logicalrep.observe.load_summary import LoadSummary
from logicalrep.observe.log import timed
from logicalrep.observe.observer import Observer, listed
from logicalrep.observe.repeating import repeating
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.columnar.compiling import is_compiling
from logicalrep_runtime.scalars import Lsn
from logicalrep_runtime.visible import visible

_LINE_AGAIN = 5.0
"""The seconds between two lines about batches."""
SILENCE = 5.0
"""The longest silence while the run starts or tables load, in seconds."""
_LOOK_AGAIN = 0.5
"""The seconds between two looks at how long it has been silent."""
_TENTH = 10


@contextmanager
def show_progress(stream: IO[str] | None = None, *, quiet: bool = False) -> Iterator[Observer]:
    """Yield a receiver that shows what happens, on standard error by default; only warnings if `quiet`."""
    stream = sys.stderr if stream is None else stream
    # Python writes warnings to standard error if nobody takes them, or once a library has logged: these are shown here.
    log, taken = logging.getLogger("logicalrep.replicate"), logging.NullHandler()
    log.addHandler(taken)
    log.propagate = False
    try:
        if stream.isatty() and not quiet:
            with Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[figures]}", markup=False),
                TimeRemainingColumn(),
                console=Console(file=stream),
            ) as progress:
                yield Bars(progress)
        else:
            printer = LinePrinter(stream, quiet=quiet)
            saying = repeating(printer.say_progress, lambda: _LOOK_AGAIN, "logicalrep-progress")
            with nullcontext() if quiet else saying:
                yield printer
    finally:
        log.removeHandler(taken)
        log.propagate = True


class _SentencePrinter(Observer):
    """The sentences that a terminal and a file have in common."""

    def on_going_on(self, tables: int, lsn: int) -> None:
        """Say where a run goes on."""
        self._say(f"going on with {tables:,} table{'' if tables == 1 else 's'} from {Lsn(lsn)}")

    def on_warning_solved(self, text: str) -> None:
        """Say that the reason of a warning is gone."""
        self._say(f"solved: {text}")

    def on_loads_needed(self, tables: Sequence[TableName], reason: str) -> None:
        """Say which tables are to be loaded."""
        self._say(f"{listed(tables)}: to be loaded: {reason}")

    def on_load_ended(self, table: TableName, rows: int, seconds: float) -> None:
        """Say that a load has ended."""
        self._say(f"{table}: loaded {rows:,} rows in {seconds:.1f} s")

    def on_schema_changed(self, table: TableName, changes: Sequence[str]) -> None:
        """Say that a table has other columns."""
        self._say(f"{table}: {'; '.join(changes)}")

    def on_listening(self, address: str) -> None:
        """Say the address of the page and of the metrics."""
        self._say(f"the page is at {address}, the metrics are at {address}metrics")

    def on_waiting(self, text: str) -> None:
        """Print what the work waits for."""
        self._print(text)

    def on_table_stopped(self, table: TableName, reason: str) -> None:
        """Print that a table is stopped."""
        self._print(f"error: {table} is stopped: {reason}")

    def on_warning(self, text: str) -> None:
        """Print what a person should know."""
        self._print(f"warning: {text}")

    def _say(self, text: str) -> None:
        """Print what need not be known."""
        self._print(text)

    @abstractmethod
    def _print(self, text: str) -> None:
        """Print a line."""


class LinePrinter(_SentencePrinter):
    """A line for each event, with the time in UTC; for batches one every few seconds."""

    def __init__(self, stream: IO[str], *, quiet: bool = False) -> None:
        """Take the stream; `quiet` leaves only warnings, and what the work waits for."""
        self._stream = stream
        self._quiet = quiet
        self._lock = threading.Lock()
        self._loads: dict[TableName, tuple[int, int]] = {}
        self._changes = self._loading = 0
        self._said_at = 0.0
        self._summary = LoadSummary()
        self._step: tuple[str, float] | None = None
        self._printed_at = time.monotonic()

    def say_progress(self) -> None:
        """Say what the start does, or how far the loads are, unless another look comes before it is silent for long."""
        now, step = time.monotonic(), self._step
        if now - self._printed_at + _LOOK_AGAIN < SILENCE:
            return
        if step is not None:
            self._say(f"still {step[0]}, {now - step[1]:.0f} s")
        elif not self._summary.is_over:
            self._say(self._summary.text())

    def on_step(self, text: str) -> None:
        """Say what the start does."""
        self._step = text, time.monotonic()
        self._say(text)

    def on_loads_needed(self, tables: Sequence[TableName], reason: str) -> None:
        """Say which tables are to be loaded."""
        self._step = None
        self._summary.need(tables)
        super().on_loads_needed(tables, reason)

    def on_load_ended(self, table: TableName, rows: int, seconds: float) -> None:
        """Say that a load has ended, and how far all are."""
        self._summary.end(table, is_loaded=True)
        super().on_load_ended(table, rows, seconds)

    def on_table_stopped(self, table: TableName, reason: str) -> None:
        """Print that a table is stopped."""
        self._summary.end(table, is_loaded=False)
        super().on_table_stopped(table, reason)

    def on_checkpoint(self, lsn: int, tables: Mapping[str, TableFigures]) -> None:
        """Note how many tables load, also those whose changes meanwhile are being applied."""
        if not is_compiling():
            self._step = None
        loading = {name for name, table in tables.items() if table.state is Standing.LOADING}
        self._loading = len(loading)
        self._summary.keep(loading)

    def on_load_begun(self, table: TableName, rows: int) -> None:
        """Note that a load has begun, of about this number of rows."""
        self._step, self._loads[table] = None, (0, rows)
        self._summary.begin(table, rows)
        self._say(f"{table}: loading about {rows:,} rows")

    def on_rows_copied(self, table: TableName, rows: int) -> None:
        """Note that some more rows are copied; say so at each tenth of the table."""
        before, estimate = self._loads[table]
        self._loads[table] = before + rows, estimate
        self._summary.add_rows(table, rows)
        tenth = (before + rows) * _TENTH // max(estimate, 1)
        if before * _TENTH // max(estimate, 1) < tenth < _TENTH:
            self._say(f"{table}: {before + rows:,} of about {estimate:,} rows, {(before + rows) * 100 // estimate} %")

    def on_batch_applied(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Note that a batch is applied."""
        self._changes += changes
        now = time.monotonic()
        if now - self._said_at >= _LINE_AGAIN:
            loading = f"; loading: {self._loading}, whose changes are buffered meanwhile" if self._loading else ""
            of_last = f"the last of {_moment(committed)}; {_behind(lag, committed)}"
            self._say(f"applied {self._changes:,} changes, {of_last}{loading}")
            self._changes, self._said_at = 0, now

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        with self._lock:
            self._printed_at = time.monotonic()
            print(timed(visible(text)), file=self._stream, flush=True)


class Bars(_SentencePrinter):
    """A bar for each table that loads, and one line for the changes that are applied."""

    def __init__(self, progress: Progress) -> None:
        """Take the display, which is running."""
        self.progress = progress
        self._loads: dict[TableName, TaskID] = {}
        self._changes: TaskID | None = None
        self._total = 0
        self._summary = LoadSummary()
        self._of_all: TaskID | None = None

    def on_step(self, text: str) -> None:
        """Show what the start does, with a bar that moves."""
        self._show(text)

    def on_checkpoint(self, lsn: int, tables: Mapping[str, TableFigures]) -> None:
        """Show how far the loads are; a load may have ended without rows, as that of a part that is refused."""
        loading = {name for name, table in tables.items() if table.state is Standing.LOADING}
        for table in [table for table in self._loads if str(table) not in loading]:
            self._end(table)
        self._summary.keep(loading)
        self._show_loads()

    def on_loads_needed(self, tables: Sequence[TableName], reason: str) -> None:
        """Say which tables are to be loaded."""
        self._summary.need(tables)
        self._show_loads()
        super().on_loads_needed(tables, reason)

    def on_table_stopped(self, table: TableName, reason: str) -> None:
        """Print that a table is stopped, and take its bar away."""
        self._end(table)
        self._summary.end(table, is_loaded=False)
        self._show_loads()
        super().on_table_stopped(table, reason)

    def _show_loads(self) -> None:
        self._show(None if self._summary.is_over else self._summary.text())

    def _show(self, text: str | None) -> None:
        """Show one line on all that goes on, above the bars of tables; none if there is nothing to show."""
        if text is None:
            if self._of_all is not None:
                self.progress.remove_task(self._of_all)
            self._of_all = None
        elif self._of_all is None:
            self._of_all = self.progress.add_task(visible(text), total=None, figures="")
        else:
            self.progress.update(self._of_all, description=visible(text))

    def on_load_begun(self, table: TableName, rows: int) -> None:
        """Note that a load has begun, of about this number of rows."""
        self._end(table)
        self._summary.begin(table, rows)
        self._show_loads()
        # The server knows no number before the table's first ANALYZE.
        self._loads[table] = self.progress.add_task(visible(str(table)), total=rows or None, figures="", estimate=rows)

    def on_rows_copied(self, table: TableName, rows: int) -> None:
        """Note that some more rows are copied."""
        self._summary.add_rows(table, rows)
        self._show_loads()
        task = self._loads.get(table)
        if task is None:
            # It was stopped meanwhile.
            return
        self.progress.advance(task, rows)
        found = next(each for each in self.progress.tasks if each.id == task)
        rate = found.completed / max(found.elapsed or 0, 0.001)
        percent = f", {min(found.percentage, 100):.0f} %" if found.fields["estimate"] else ""
        estimate = f" of about {found.fields['estimate']:,}" if found.fields["estimate"] else ""
        self.progress.update(task, figures=f"{found.completed:,.0f}{estimate} rows{percent}, {rate:,.0f}/s")

    def on_load_ended(self, table: TableName, rows: int, seconds: float) -> None:
        """Say that a load has ended: its bar makes room for others."""
        self._end(table)
        self._summary.end(table, is_loaded=True)
        self._show_loads()
        super().on_load_ended(table, rows, seconds)

    def _print(self, text: str) -> None:
        self.progress.console.print(visible(text), markup=False, highlight=False)

    def _end(self, table: TableName) -> None:
        task = self._loads.pop(table, None)
        if task is not None:
            self.progress.remove_task(task)

    def on_batch_applied(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Note that a batch is applied."""
        if self._changes is None:
            self._changes = self.progress.add_task("changes", total=None, figures="")
        self._total += changes
        rate = changes / max(seconds, 0.001)
        self.progress.update(
            self._changes,
            figures=f"{self._total:,} applied, {rate:,.0f}/s, last of {_moment(committed)}; {_behind(lag, committed)}",
        )


def _moment(committed: datetime | None) -> str:
    return "an unknown time" if committed is None else f"{committed:%H:%M:%S} UTC"


def _behind(lag: int, committed: datetime | None) -> str:
    seconds = lag_seconds(lag, datetime.now(UTC), committed)
    return f"{lag / 1e6:.1f} MB{'' if seconds is None else f' and {seconds:.1f} s'} behind"
