"""The ends of batches from a receiver."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from logicalrep import Lsn
from logicalrep.spark.peek.admission import Limits
from logicalrep.spark.walsender.backlog import Backlog
from logicalrep.spark.walsender.receiver import Progress, Receiver


@pytest.fixture
def receiver() -> Receiver:
    """Return a receiver with transactions of ten rows each that end at 100, 200 and 300, and everything up to 350."""
    receiver = Receiver.__new__(Receiver)
    receiver._changed, receiver._thread = threading.Condition(), threading.current_thread()
    receiver._backlog, receiver._progress = Backlog(), Progress(position=Lsn(350))
    receiver._rows, receiver._room = SimpleNamespace(size=0), 0  # type: ignore[assignment]
    for end in (100, 200, 300):
        receiver._backlog.add(end, 10, 1, 0)
    return receiver


@pytest.mark.parametrize(
    ("start", "changes", "end", "has_rows"),
    [
        (50, None, 350, True),
        (50, 30, 350, True),
        (50, 29, 200, True),
        (50, 5, 100, True),
        (200, 5, 350, True),
        (300, None, 350, False),
        (400, None, 400, False),
    ],
)
def test_a_batch_with_the_last_rows_ends_where_all_is_received(
    receiver: Receiver, start: int, changes: int | None, end: int, has_rows: bool
) -> None:
    assert receiver.end_after(Lsn(start), Limits(changes, None)) == (end, has_rows)


@pytest.mark.parametrize(("start", "wal", "end"), [(50, 49, 100), (50, 50, 100), (50, 249, 200), (50, 250, 350)])
def test_a_batch_of_so_much_wal(receiver: Receiver, start: int, wal: int, end: int) -> None:
    assert receiver.end_after(Lsn(start), Limits(wal=wal)) == (end, True)


def test_a_transaction_of_which_the_position_is_yet_to_be_told(receiver: Receiver) -> None:
    receiver._progress = Progress(position=Lsn(250))
    assert receiver.end_after(Lsn(50), Limits(None, None)) == (300, True)


@pytest.mark.parametrize(
    ("start", "changes", "size", "until", "waits"),
    [
        (50, 30, None, 400, False),
        (50, 31, None, 400, True),
        (100, 30, 2, 400, False),
        (100, 30, 3, 400, True),
        (300, 1, None, 350, False),
        (300, 1, None, 351, True),
    ],
)
def test_a_batch_waits_until_it_has_enough_or_all_there_is(
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    start: int,
    changes: int,
    size: int | None,
    until: int,
    waits: bool,
) -> None:
    waited = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        receiver._progress = Progress(position=Lsn(until))

    monkeypatch.setattr(receiver._changed, "wait", wait)
    assert receiver.wait(Lsn(start), 60, Lsn(until), Limits(changes, size))
    assert bool(waited) == waits


def test_a_batch_waits_for_a_time_at_most(receiver: Receiver) -> None:
    began = time.monotonic()
    assert not receiver.wait(Lsn(50), 0.2, Lsn(400), Limits(31, None))
    assert time.monotonic() - began >= 0.2
