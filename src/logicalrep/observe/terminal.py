"""The output of `logicalrep replicate`: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING

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
from logicalrep_runtime.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_BATCH_LINES_INTERVAL = 5.0
"""The seconds between lines about batches."""
LONGEST_SILENCE = 5.0
"""The longest time without a line while tables load, in seconds. For a step it doubles with each line of the step."""
_LONGEST_SILENCE_OF_STEP = 60.0
_CHECK_INTERVAL = 0.5
"""The seconds between checks of the silence."""
_TENTH = 10


@contextmanager
def show_progress(stream: IO[str] | None = None, *, quiet: bool = False) -> Iterator[Observer]:
    """Yield an observer that shows events on a stream, by default standard error; only warnings if `quiet`."""
    stream = sys.stderr if stream is None else stream
    # Without a handler, or once a library has logged, Python writes warnings to standard error a second time.
    log, handler = logging.getLogger("logicalrep.replicate"), logging.NullHandler()
    log.addHandler(handler)
    log.propagate = False
    try:
        if stream.isatty() and not quiet:
            # Only for bars: a start without them takes 0.04 CPU-seconds less.
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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
            printing = repeating(printer.print_progress, lambda: _CHECK_INTERVAL, "logicalrep-progress")
            with nullcontext() if quiet else printing:
                yield printer
    finally:
        log.removeHandler(handler)
        log.propagate = True


class LinePrinter(Observer):
    """Prints a line for each event, with the time in UTC; for batches a line every few seconds.

    With `quiet` it prints only warnings, errors and waits.
    """

    def __init__(self, stream: IO[str], *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._lock = threading.Lock()
        self._copies: dict[TableName, tuple[int, int]] = {}
        self._changes = self._loading = 0
        self._batches_printed_at = 0.0
        self._summary = LoadSummary()
        self._step: tuple[str, float] | None = None
        self._silence = LONGEST_SILENCE
        self._printed_at = time.monotonic()

    def print_progress(self) -> None:
        time_now, step = time.monotonic(), self._step
        if time_now - self._printed_at + _CHECK_INTERVAL < self._silence:
            return
        if step is None and not self._summary.is_over:
            self._print_unless_quiet(self._summary.text())
        elif step is not None:
            self._print_unless_quiet(f"still {step[0]}, {time_now - step[1]:.0f} s")
            self._silence = min(2 * self._silence, _LONGEST_SILENCE_OF_STEP)

    def on_event(self, event: RunEvent) -> None:
        self._summary.on_event(event)
        match event:
            case StepStarted(text):
                self._set_step((text, time.monotonic()))
            case LoadsNeeded():
                self._set_step(None)
            case CopyStarted(table, estimate):
                self._set_step(None)
                self._copies[table] = 0, estimate
            case RowsCopied(table, rows):
                self._print_tenth(table, rows)
            case CheckpointSaved():
                self._loading = len(event.loading())
                self._set_step(None)
            case BatchApplied():
                self._print_batch(event)
        is_shown = self._summary.names(event) and (event.level > logging.INFO or not self._quiet)
        if is_shown and (line := _line(event)) is not None:
            self._print(line)
        if (end := self._summary.take_end()) is not None:
            self._print_unless_quiet(end)

    def _set_step(self, step: tuple[str, float] | None) -> None:
        self._step, self._silence = step, LONGEST_SILENCE

    def _print_tenth(self, table: TableName, rows: int) -> None:
        copied, estimate = self._copies[table]
        self._copies[table] = copied + rows, estimate
        tenth = (copied + rows) * _TENTH // max(estimate, 1)
        is_shown = self._summary.names(CopyStarted(table, estimate))
        if is_shown and copied * _TENTH // max(estimate, 1) < tenth < _TENTH:
            self._print_unless_quiet(
                f"{table}: {copied + rows:,} of about {estimate:,} rows, {(copied + rows) * 100 // estimate} %"
            )

    def _print_batch(self, batch: BatchApplied) -> None:
        self._changes += batch.changes
        time_now = time.monotonic()
        if time_now - self._batches_printed_at >= _BATCH_LINES_INTERVAL:
            loading = f"; {self._loading} loading, their changes are buffered" if self._loading else ""
            self._print_unless_quiet(
                f"applied {self._changes:,} changes, last commit at {_commit_time(batch)}; {_lag(batch)}{loading}"
            )
            self._changes, self._batches_printed_at = 0, time_now

    def _print_unless_quiet(self, text: str) -> None:
        if not self._quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        with self._lock:
            self._printed_at = time.monotonic()
            print(timed(visible(text)), file=self._stream, flush=True)


class Bars(Observer):
    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._copies: dict[TableName, TaskID] = {}
        self._changes: TaskID | None = None
        self._total = 0
        self._summary = LoadSummary()
        self._status_task: TaskID | None = None

    def on_event(self, event: RunEvent) -> None:
        self._summary.on_event(event)
        match event:
            case StepStarted(text):
                self._show(text)
            case LoadsNeeded() | CopyStarted() | RowsCopied() | CopyEnded() | TableStopped() | CheckpointSaved():
                self._show_loads(event)
            case BatchApplied():
                self._show_batch(event)
        is_shown = self._summary.names(event) and not isinstance(event, StepStarted | CopyStarted)
        if is_shown and (line := _line(event)) is not None:
            self._print(line)
        if (end := self._summary.take_end()) is not None:
            self._print(end)

    def _print(self, line: str) -> None:
        self.progress.console.print(visible(line), markup=False, highlight=False)

    def _show_loads(self, event: RunEvent) -> None:
        self._show(None if self._summary.is_over else self._summary.text())
        match event:
            case CopyStarted(table, estimate):
                self._remove_bar(table)
                # The server knows no number before the table's first ANALYZE.
                self._copies[table] = self.progress.add_task(
                    visible(str(table)), total=estimate or None, figures="", estimate=estimate
                )
            case RowsCopied(table, rows):
                self._advance_bar(table, rows)
            case CopyEnded(table=table) | TableStopped(table=table):
                self._remove_bar(table)
            case CheckpointSaved():
                # A load may end without rows, for example a refused load of a part.
                loading = event.loading()
                for table in [table for table in self._copies if str(table) not in loading]:
                    self._remove_bar(table)

    def _show(self, text: str | None) -> None:
        """Show one status line above the bars of tables; None removes it."""
        if text is None:
            if self._status_task is not None:
                self.progress.remove_task(self._status_task)
            self._status_task = None
        elif self._status_task is None:
            self._status_task = self.progress.add_task(visible(text), total=None, figures="")
        else:
            self.progress.update(self._status_task, description=visible(text))

    def _advance_bar(self, table: TableName, rows: int) -> None:
        task = self._copies.get(table)
        if task is None:
            # The table was stopped meanwhile.
            return
        self.progress.advance(task, rows)
        bar = next(bar for bar in self.progress.tasks if bar.id == task)
        rate = bar.completed / max(bar.elapsed or 0, 0.001)
        percent = f", {min(bar.percentage, 100):.0f} %" if bar.fields["estimate"] else ""
        estimate = f" of about {bar.fields['estimate']:,}" if bar.fields["estimate"] else ""
        self.progress.update(task, figures=f"{bar.completed:,.0f}{estimate} rows{percent}, {rate:,.0f}/s")

    def _remove_bar(self, table: TableName) -> None:
        task = self._copies.pop(table, None)
        if task is not None:
            self.progress.remove_task(task)

    def _show_batch(self, batch: BatchApplied) -> None:
        if self._changes is None:
            self._changes = self.progress.add_task("changes", total=None, figures="")
        self._total += batch.changes
        rate = batch.changes / max(batch.seconds, 0.001)
        self.progress.update(
            self._changes,
            figures=f"{self._total:,} applied, {rate:,.0f}/s, last commit at {_commit_time(batch)}; {_lag(batch)}",
        )


def _line(event: RunEvent) -> str | None:
    prefix = "warning: " if isinstance(event, WarningIssued) else "error: " if event.level == logging.ERROR else ""
    return None if (line := event.line()) is None else prefix + line


def _commit_time(batch: BatchApplied) -> str:
    return "an unknown time" if batch.committed is None else f"{batch.committed:%H:%M:%S} UTC"


def _lag(batch: BatchApplied) -> str:
    seconds = batch.lag_seconds
    return f"{batch.lag_bytes / 1e6:.1f} MB{'' if seconds is None else f' and {seconds:.1f} s'} behind"
