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


def test_the_time_that_is_left_needs_a_report_of_each_table_in_progress(clock: list[float]) -> None:
    summary = LoadSummary()
    summary.on_event(LoadsNeeded([SMALL, LARGE], "new"))
    assert summary.text() == "0 of 2 tables loaded"
    summary.on_event(CopyStarted(SMALL, 100))
    clock[0] += 60
    summary.on_event(RowsCopied(SMALL, 10))
    clock[0] += 60
    summary.on_event(RowsCopied(SMALL, 10))
    assert summary.text() == "0 of 2 tables loaded, 20 of 100 rows or more"
    summary.on_event(CopyStarted(LARGE, 1900))
    assert summary.text() == "0 of 2 tables loaded, 20 of 2,000 rows"
    clock[0] += 30
    summary.on_event(RowsCopied(LARGE, 900))
    # 910 rows in 90 seconds since the first report; 1,080 rows are left.
    assert summary.text() == "0 of 2 tables loaded, 920 of 2,000 rows, about 2 min"
    summary.on_event(RowsCopied(SMALL, 80))
    summary.on_event(CopyEnded(SMALL, 100, 1.0))
    summary.on_event(RowsCopied(LARGE, 1000))
    assert summary.text() == "1 of 2 tables loaded, 2,000 of 2,000 rows"


def test_one_report_is_no_rate(clock: list[float]) -> None:
    summary = LoadSummary()
    summary.on_event(LoadsNeeded([LARGE], "requested"))
    summary.on_event(CopyStarted(LARGE, 900_000))
    clock[0] += 20
    summary.on_event(RowsCopied(LARGE, 386))
    clock[0] += 5
    assert summary.text() == "0 of 1 table loaded, 386 of 900,000 rows"
