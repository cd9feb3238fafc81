"""The output of `logicalrep replicate`: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from logicalrep.observe.events import (
    BatchApplied,
    CheckpointSaved,
    CopyEnded,
    CopyStarted,
    LoadsNeeded,
    RowsCopied,
    RunEvent,
    StepStarted,
    TableStopped,
    WarningIssued,
)
from logicalrep.observe.load_summary import LoadSummary
from logicalrep.observe.log import timed
from logicalrep.observe.observer import Observer
from logicalrep.observe.repeating import repeating
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.columnar.compiling import is_compiling
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


class LinePrinter(Observer):
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

    def on_event(self, event: RunEvent) -> None:
        """Print an event's line, and count what other lines sum up."""
        self._summary.on_event(event)
        match event:
            case StepStarted(text):
                self._step = text, time.monotonic()
            case LoadsNeeded():
                self._step = None
            case CopyStarted(table, estimate):
                self._step, self._loads[table] = None, (0, estimate)
            case RowsCopied(table, rows):
                self._say_tenth(table, rows)
            case CheckpointSaved():
                self._loading = len(event.loading())
                if not is_compiling():
                    self._step = None
            case BatchApplied():
                self._say_batch(event)
        if (line := _line(event)) is not None and (event.level > logging.INFO or not self._quiet):
            self._print(line)

    def _say_tenth(self, table: TableName, rows: int) -> None:
        copied, estimate = self._loads[table]
        self._loads[table] = copied + rows, estimate
        tenth = (copied + rows) * _TENTH // max(estimate, 1)
        if copied * _TENTH // max(estimate, 1) < tenth < _TENTH:
            self._say(f"{table}: {copied + rows:,} of about {estimate:,} rows, {(copied + rows) * 100 // estimate} %")

    def _say_batch(self, batch: BatchApplied) -> None:
        self._changes += batch.changes
        now = time.monotonic()
        if now - self._said_at >= _LINE_AGAIN:
            loading = f"; loading: {self._loading}, whose changes are buffered meanwhile" if self._loading else ""
            self._say(f"applied {self._changes:,} changes, the last of {_moment(batch)}; {_behind(batch)}{loading}")
            self._changes, self._said_at = 0, now

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        with self._lock:
            self._printed_at = time.monotonic()
            print(timed(visible(text)), file=self._stream, flush=True)


class Bars(Observer):
    """A bar for each table that loads, and one line for the changes that are applied."""

    def __init__(self, progress: Progress) -> None:
        """Take the display, which is running."""
        self.progress = progress
        self._loads: dict[TableName, TaskID] = {}
        self._changes: TaskID | None = None
        self._total = 0
        self._summary = LoadSummary()
        self._of_all: TaskID | None = None

    def on_event(self, event: RunEvent) -> None:
        """Print an event's line above the bars, and move those."""
        self._summary.on_event(event)
        match event:
            case StepStarted(text):
                self._show(text)
            case LoadsNeeded() | CopyStarted() | RowsCopied() | CopyEnded() | TableStopped() | CheckpointSaved():
                self._show_loads(event)
            case BatchApplied():
                self._show_batch(event)
        if (line := _line(event)) is not None and not isinstance(event, StepStarted | CopyStarted):
            self.progress.console.print(visible(line), markup=False, highlight=False)

    def _show_loads(self, event: RunEvent) -> None:
        self._show(None if self._summary.is_over else self._summary.text())
        match event:
            case CopyStarted(table, estimate):
                self._remove_bar(table)
                # The server knows no number before the table's first ANALYZE.
                self._loads[table] = self.progress.add_task(
                    visible(str(table)), total=estimate or None, figures="", estimate=estimate
                )
            case RowsCopied(table, rows):
                self._advance_bar(table, rows)
            case CopyEnded(table=table) | TableStopped(table=table):
                self._remove_bar(table)
            case CheckpointSaved():
                # A load may have ended without rows, as the load of a part that is refused.
                loading = event.loading()
                for table in [table for table in self._loads if str(table) not in loading]:
                    self._remove_bar(table)

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

    def _advance_bar(self, table: TableName, rows: int) -> None:
        task = self._loads.get(table)
        if task is None:
            # It was stopped meanwhile.
            return
        self.progress.advance(task, rows)
        bar = next(bar for bar in self.progress.tasks if bar.id == task)
        rate = bar.completed / max(bar.elapsed or 0, 0.001)
        percent = f", {min(bar.percentage, 100):.0f} %" if bar.fields["estimate"] else ""
        estimate = f" of about {bar.fields['estimate']:,}" if bar.fields["estimate"] else ""
        self.progress.update(task, figures=f"{bar.completed:,.0f}{estimate} rows{percent}, {rate:,.0f}/s")

    def _remove_bar(self, table: TableName) -> None:
        task = self._loads.pop(table, None)
        if task is not None:
            self.progress.remove_task(task)

    def _show_batch(self, batch: BatchApplied) -> None:
        if self._changes is None:
            self._changes = self.progress.add_task("changes", total=None, figures="")
        self._total += batch.changes
        rate = batch.changes / max(batch.seconds, 0.001)
        self.progress.update(
            self._changes,
            figures=f"{self._total:,} applied, {rate:,.0f}/s, last of {_moment(batch)}; {_behind(batch)}",
        )


def _line(event: RunEvent) -> str | None:
    prefix = "warning: " if isinstance(event, WarningIssued) else "error: " if isinstance(event, TableStopped) else ""
    return None if (line := event.line()) is None else prefix + line


def _moment(batch: BatchApplied) -> str:
    return "an unknown time" if batch.committed is None else f"{batch.committed:%H:%M:%S} UTC"


def _behind(batch: BatchApplied) -> str:
    seconds = batch.lag_seconds
    return f"{batch.lag_bytes / 1e6:.1f} MB{'' if seconds is None else f' and {seconds:.1f} s'} behind"
