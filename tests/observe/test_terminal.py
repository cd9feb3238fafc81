"""What `logicalrep replicate` shows: bars and one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re
import sys
from datetime import UTC, datetime, timedelta

import pytest

from logicalrep.observe.events import (
    BatchApplied,
    CheckpointSaved,
    CopyEnded,
    CopyStarted,
    LoadsNeeded,
    RowsCopied,
    RunResumed,
    StepStarted,
    TableStopped,
    WaitReported,
    WarningIssued,
)
from logicalrep.observe.figures import Standing, TableFigures
from logicalrep.observe.observer import Observer
from logicalrep.observe.terminal import Bars, LinePrinter, show_progress
from logicalrep.transactions.table_names import TableName
from tests.terminals import Terminal
from tests.waiting import eventually

ORDERS = TableName("public", "Odd [bold] orders")


def lines_of(stream: io.StringIO) -> list[str]:
    """Return the lines without the time that each begins with."""
    matches = [re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (.*)", line) for line in stream.getvalue().splitlines()]
    return [match[1] for match in matches if match is not None]


def load(observer: Observer, estimate: int, *copies: int) -> None:
    observer.on_event(CopyStarted(ORDERS, estimate))
    for copied in copies:
        observer.on_event(RowsCopied(ORDERS, copied))
    observer.on_event(CopyEnded(ORDERS, sum(copies), 1.25))


def test_lines_of_a_load_tell_each_tenth() -> None:
    stream = io.StringIO()
    with show_progress(stream) as observer:
        assert isinstance(observer, LinePrinter)
        load(observer, 1000, 50, 60, 40, 750, 99, 5)
    assert lines_of(stream) == [
        'public."Odd [bold] orders": loading about 1,000 rows',
        'public."Odd [bold] orders": 110 of about 1,000 rows, 11 %',
        'public."Odd [bold] orders": 900 of about 1,000 rows, 90 %',
        'public."Odd [bold] orders": loaded 1,004 rows in 1.2 s',
    ]


def test_progress_of_a_table_of_unknown_size_and_of_a_reload() -> None:
    for stream in (io.StringIO(), Terminal()):
        with show_progress(stream) as observer:
            load(observer, 0, 50, 60)
            observer.on_event(CopyStarted(ORDERS, 10))
            observer.on_event(RowsCopied(ORDERS, 3))
            load(observer, 10, 10)
        assert "loaded 110 rows" in stream.getvalue()
        assert "loaded 10 rows" in stream.getvalue()


def test_lines_of_batches_come_every_few_seconds(clock: list[float]) -> None:
    stream = io.StringIO()
    observer = LinePrinter(stream)
    committed = datetime.now(UTC) - timedelta(seconds=2)
    for _ in range(12):
        observer.on_event(BatchApplied(100, 2, 0.1, 1_500_000, committed))
        clock[0] += 1
    lines = lines_of(stream)
    assert [line.split(",")[0] for line in lines] == [
        "applied 100 changes",
        "applied 500 changes",
        "applied 500 changes",
    ]
    assert re.fullmatch(rf"applied .*, last commit at {committed:%H:%M:%S} UTC; 1\.5 MB and 2\.\d s behind", lines[0])
    observer.on_event(BatchApplied(1, 1, 0.1, 0, None))
    assert len(lines_of(stream)) == 3


def test_quiet_leaves_warnings_and_what_the_work_waits_for() -> None:
    for stream in (io.StringIO(), Terminal()):
        with show_progress(stream, quiet=True) as observer:
            load(observer, 10, 10)
            observer.on_event(BatchApplied(100, 2, 0.1, 0, None))
            observer.on_event(WaitReported("waits for the transaction of process 1"))
            observer.on_event(WarningIssued("public.bare is not replicated"))
        assert lines_of(stream) == ["waits for the transaction of process 1", "warning: public.bare is not replicated"]


def test_a_terminal_has_a_bar_for_each_load_and_one_line_for_changes() -> None:
    stream = Terminal()
    with show_progress(stream) as observer:
        assert isinstance(observer, Bars)
        observer.on_event(CopyStarted(ORDERS, 1000))
        observer.on_event(RowsCopied(ORDERS, 250))
        _, bar = observer.progress.tasks
        assert (bar.description, bar.completed, bar.total) == (str(ORDERS), 250, 1000)
        assert re.fullmatch(r"250 of about 1,000 rows, 25 %, [\d,]+/s", bar.fields["figures"])
        observer.on_event(RowsCopied(ORDERS, 750))
        observer.on_event(CopyEnded(ORDERS, 1000, 2.0))
        assert not observer.progress.tasks
        committed = datetime.now(UTC)
        observer.on_event(BatchApplied(100, 1, 0.5, 2_000_000, committed))
        observer.on_event(BatchApplied(50, 1, 0.5, 0, committed))
        observer.on_event(WarningIssued("[red]as it is[/red]"))
        (line,) = observer.progress.tasks
        assert line.fields["figures"].startswith(
            f"150 applied, 100/s, last commit at {committed:%H:%M:%S} UTC; 0.0 MB and"
        )
    text = stream.getvalue()
    assert f"{ORDERS}: loaded 1,000 rows in 2.0 s" in text
    assert "warning: [red]as it is[/red]" in text


def test_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as observer:
        observer.on_event(WarningIssued("something"))
    captured = capsys.readouterr()
    assert (captured.out, captured.err.endswith("Z warning: something\n")) == ("", True)
    assert not sys.stderr.isatty()


def test_the_start_and_loads_are_never_silent_for_long(clock: list[float]) -> None:
    stream = io.StringIO()
    observer = LinePrinter(stream)

    def wait(seconds: int) -> None:
        for _ in range(seconds):
            clock[0] += 1
            observer.print_progress()

    tables = [TableName("public", f"t{number}") for number in range(3)]
    observer.on_event(StepStarted("reading the catalog"))
    wait(37)
    observer.on_event(RunResumed(2, 1 << 32))
    observer.on_event(LoadsNeeded(tables, "new table"))
    wait(6)
    for table in tables:
        observer.on_event(CopyStarted(table, 2_000_000))
    wait(4)
    observer.on_event(RowsCopied(tables[0], 600_000))
    wait(7)
    observer.on_event(CopyEnded(tables[0], 2_000_000, 9))
    observer.on_event(TableStopped(tables[1], "a reason"))
    wait(6)
    observer.on_event(CopyEnded(tables[2], 5, 9))
    wait(20)
    assert [line for line in lines_of(stream) if "loading about" not in line] == [
        "reading the catalog",
        "still reading the catalog, 5 s",
        "still reading the catalog, 15 s",
        "still reading the catalog, 35 s",
        "resuming 2 tables from 1/0",
        "public.t0, public.t1, public.t2: load needed: new table; replicate loads the rows, no action needed",
        "0 of 3 tables loaded",
        "public.t0: 600,000 of about 2,000,000 rows, 30 %",
        "0 of 3 tables loaded, 0.6 of 6.0 million rows",
        "public.t0: loaded 2,000,000 rows in 9.0 s",
        "error: public.t1 is stopped: a reason",
        "1 of 2 tables loaded, 0.6 of 2.6 million rows",
        "public.t2: loaded 5 rows in 9.0 s",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["lines", "bars"])
def test_many_small_tables_have_one_line_at_their_end(stream: io.StringIO) -> None:
    """A large table among them has its own lines, and so has a small table that loads later."""
    tables = [TableName("public", f"t{number}") for number in range(300)]
    large, next_table = TableName("public", "large"), TableName("public", "later")
    with show_progress(stream) as observer:
        observer.on_event(LoadsNeeded([*tables, large], "new table"))
        for table in (*tables, large):
            observer.on_event(CopyStarted(table, 500_000 if table == large else 10))
            observer.on_event(RowsCopied(table, 500_000 if table == large else 10))
        for table in (large, *tables):
            observer.on_event(CopyEnded(table, 500_000 if table == large else 10, 1.0))
        observer.on_event(LoadsNeeded([next_table], "new table"))
        observer.on_event(CopyStarted(next_table, 0))
        observer.on_event(CopyEnded(next_table, 3, 0.1))
    text = stream.getvalue()
    lines = [
        "public.large: loaded 500,000 rows in 1.0 s",
        "301 of 301 tables loaded, 503,000 of 503,000 rows",
        "public.later: loaded 3 rows in 0.1 s",
    ]
    positions = [text.find(line) for line in lines]
    assert -1 < positions[0] < positions[1] < positions[2]
    assert "public.t7: load" not in text


def test_a_load_that_ended_before_it_was_announced_is_over(clock: list[float]) -> None:
    for stream in (io.StringIO(), Terminal()):
        with show_progress(stream) as observer:
            load(observer, 10, 10)
            observer.on_event(LoadsNeeded([ORDERS], "new table"))
            observer.on_event(CheckpointSaved(1, {str(ORDERS): TableFigures(state=Standing.LOADING)}))
            if isinstance(observer, Bars):
                assert [task.description for task in observer.progress.tasks] == ["0 of 1 table loaded"]
            observer.on_event(CheckpointSaved(2, {str(ORDERS): TableFigures(state=Standing.FOLLOWING)}))
            if isinstance(observer, Bars):
                assert not observer.progress.tasks
            else:
                assert isinstance(observer, LinePrinter)
                clock[0] += 60
                observer.print_progress()
        assert "of 1 table" not in stream.getvalue() or isinstance(stream, Terminal)


def test_a_terminal_has_a_line_on_all_loads_and_no_bar_of_a_stopped_table() -> None:
    stream = Terminal()
    with show_progress(stream) as observer:
        assert isinstance(observer, Bars)
        observer.on_event(StepStarted("reading the catalog"))
        assert [task.description for task in observer.progress.tasks] == ["reading the catalog"]
        other = TableName("public", "other")
        observer.on_event(LoadsNeeded([ORDERS, other], "new table"))
        observer.on_event(CopyStarted(ORDERS, 1000))
        observer.on_event(RowsCopied(ORDERS, 250))
        of_all, bar = observer.progress.tasks
        assert of_all.description == "0 of 2 tables loaded, 250 of 1,000 rows or more"
        assert "rows, 25 %, " in bar.fields["figures"]
        observer.on_event(TableStopped(ORDERS, "a reason"))
        observer.on_event(RowsCopied(ORDERS, 250))
        assert [task.description for task in observer.progress.tasks] == ["0 of 1 table loaded"]
        observer.on_event(CopyStarted(other, 0))
        observer.on_event(CopyEnded(other, 7, 1.0))
        assert not observer.progress.tasks


def test_the_bar_of_a_load_that_is_given_up_goes() -> None:
    with show_progress(Terminal()) as observer:
        assert isinstance(observer, Bars)
        observer.on_event(LoadsNeeded([ORDERS], "asked for: the rows where id < 100"))
        observer.on_event(CopyStarted(ORDERS, 1000))
        observer.on_event(CheckpointSaved(1, {str(ORDERS): TableFigures(state=Standing.LOADING)}))
        assert len(observer.progress.tasks) == 2
        observer.on_event(CheckpointSaved(2, {str(ORDERS): TableFigures(state=Standing.FOLLOWING)}))
        assert not observer.progress.tasks


def test_a_checkpoint_ends_a_step(clock: list[float]) -> None:
    stream = io.StringIO()
    observer = LinePrinter(stream)
    observer.on_event(StepStarted("reading the catalog"))
    for _ in range(2):
        clock[0] += 60
        observer.print_progress()
        observer.on_event(CheckpointSaved(1, {}))
    assert lines_of(stream) == ["reading the catalog", "still reading the catalog, 60 s"]


def test_a_long_step_writes_lines_without_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logicalrep.observe.terminal.LONGEST_SILENCE", 0.5)
    stream = io.StringIO()
    with show_progress(stream) as observer:
        observer.on_event(StepStarted("reading the catalog"))
        eventually(lambda: "still reading the catalog" in stream.getvalue())
