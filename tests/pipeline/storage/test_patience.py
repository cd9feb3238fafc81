"""Retries while a destination cannot be written."""

from __future__ import annotations

import threading

import pytest

from logicalrep.observe.events import DestinationFailing, ErrorCounted, RunEvent, WaitEnded, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import StorageError


class Lines(Observer):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.errors: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case WaitReported(text):
                self.lines.append(text)
            case ErrorCounted(kind):
                self.errors.append(kind)


_FAILING = (
    "[STORAGE_NOT_WRITABLE] no space; replicate retries, and the slot retains 5 MiB: free space at the destination, or "
    "repair the access to it; no restart is needed"
)


class Stop(threading.Event):
    """An event in whose waits no time passes."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


def test_two_outages_within_a_minute_are_one_line_and_all_failures_are_counted() -> None:
    lines, stop, failures = Lines(), Stop(), [2]
    patience = Patience(lines, stop, lambda: "the slot retains 5 MiB", 30.0)

    def fail_first() -> str:
        if failures[0]:
            failures[0] -= 1
            raise StorageError("no space")
        return "written"

    assert patience.run(fail_first) == "written"
    failures[0] = 2
    assert patience.run(fail_first) == "written"
    assert lines.lines == [_FAILING]
    assert lines.errors == ["destination"] * 4
    stop.set()
    failures[0] = 1
    with pytest.raises(StorageError):
        patience.run(fail_first)


class Failures(Observer):
    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def on_event(self, event: RunEvent) -> None:
        if not isinstance(event, ErrorCounted):
            self.events.append(event)


def test_failures_that_last_are_an_error_and_their_end_is_reported() -> None:
    observer, failures = Failures(), 3
    patience = Patience(observer, Stop(), lambda: "the slot retains 5 MiB", 0.0)

    def fail_first() -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StorageError("no space")

    patience.run(fail_first)
    assert observer.events == [
        DestinationFailing(_FAILING, is_first=True),
        DestinationFailing(_FAILING, is_first=False),
        WaitEnded("the destination can be written again: replication resumes"),
    ]
    patience.run(fail_first)
    assert len(observer.events) == 3
