"""The sentence on the progress of all loads: estimates come from tables that have reported."""

from __future__ import annotations

import time

import pytest

from logicalrep.observe.events import CopyEnded, CopyStarted, LoadsNeeded, RowsCopied
from logicalrep.observe.load_summary import LoadSummary
from logicalrep.transactions.table_names import TableName

SMALL, LARGE = TableName("public", "small"), TableName("public", "large")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def test_the_time_left_needs_a_share_of_each_table_in_progress(clock: list[float]) -> None:
    summary = LoadSummary()
    summary.on_event(LoadsNeeded([SMALL, LARGE], "new"))
    assert summary.text() == "0 of 2 tables loaded"
    summary.on_event(CopyStarted(SMALL, 100))
    clock[0] += 60
    summary.on_event(RowsCopied(SMALL, 20))
    assert summary.text() == "0 of 2 tables loaded, 20 of 100 rows or more"
    summary.on_event(CopyStarted(LARGE, 1900))
    clock[0] += 30
    summary.on_event(RowsCopied(LARGE, 94))
    assert summary.text() == "0 of 2 tables loaded, 114 of 2,000 rows"
    summary.on_event(RowsCopied(LARGE, 6))
    # 20 rows in 90 seconds, and 100 in 30: 3.56 rows a second; 1,880 rows are left.
    assert summary.text() == "0 of 2 tables loaded, 120 of 2,000 rows, about 9 min"
    summary.on_event(RowsCopied(SMALL, 80))
    summary.on_event(CopyEnded(SMALL, 100, 1.0))
    # Only the large table's own clock counts now: 1,000 rows in 60 seconds.
    clock[0] += 30
    summary.on_event(RowsCopied(LARGE, 900))
    assert summary.text() == "1 of 2 tables loaded, 1,100 of 2,000 rows, about 54 s"
    summary.on_event(RowsCopied(LARGE, 900))
    assert summary.text() == "1 of 2 tables loaded, 2,000 of 2,000 rows"


def test_finished_tables_do_not_foretell_a_large_one(clock: list[float]) -> None:
    summary = LoadSummary()
    small = [TableName("public", f"small_{number}") for number in range(20)]
    summary.on_event(LoadsNeeded([*small, LARGE], "new"))
    summary.on_event(CopyStarted(LARGE, 10_000_000))
    for table in small:
        summary.on_event(CopyStarted(table, 1000))
        clock[0] += 1
        summary.on_event(RowsCopied(table, 1000))
        summary.on_event(CopyEnded(table, 1000, 1.0))
    assert summary.text() == "20 of 21 tables loaded, 0.0 of 10.0 million rows"
    clock[0] += 20
    summary.on_event(RowsCopied(LARGE, 2_500_000))
    assert summary.text() == "20 of 21 tables loaded, 2.5 of 10.0 million rows, about 2 min"


def test_a_table_of_unknown_size_has_no_time_left(clock: list[float]) -> None:
    summary = LoadSummary()
    summary.on_event(LoadsNeeded([SMALL, LARGE], "new"))
    summary.on_event(CopyStarted(SMALL, 100))
    summary.on_event(CopyStarted(LARGE, 0))
    clock[0] += 10
    summary.on_event(RowsCopied(SMALL, 50))
    summary.on_event(RowsCopied(LARGE, 386))
    assert summary.text() == "0 of 2 tables loaded, 436 of 486 rows"


def test_a_repeated_copy_starts_its_clock_again(clock: list[float]) -> None:
    summary = LoadSummary()
    summary.on_event(LoadsNeeded([LARGE], "requested"))
    summary.on_event(CopyStarted(LARGE, 1000))
    clock[0] += 1000
    summary.on_event(RowsCopied(LARGE, 900))
    summary.on_event(CopyStarted(LARGE, 1000))
    clock[0] += 10
    summary.on_event(RowsCopied(LARGE, 500))
    assert summary.text() == "0 of 1 table loaded, 500 of 1,000 rows, about 10 s"
