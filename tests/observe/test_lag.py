"""The lag in seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from logicalrep.observe.lag import WalHeads, lag_seconds
from logicalrep_runtime.scalars import Lsn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_it_counts_from_the_later_of_what_is_known() -> None:
    assert lag_seconds(7, after(10), after(3), after(4)) == 6
    assert lag_seconds(7, after(10), None, after(4)) == 6
    assert lag_seconds(0, after(10), after(4)) == 0
    assert lag_seconds(7, after(10), None) is None
    assert lag_seconds(None, after(10), after(4)) is None
    # The server told so a while ago, and has not been heard since.
    assert lag_seconds(0, after(10), after(4), as_of=after(0)) == 0
    assert lag_seconds(0, after(100), after(4), as_of=after(10)) == 90
    assert lag_seconds(0, after(100), None, as_of=after(10)) == 90
    assert lag_seconds(7, after(100), after(4), as_of=after(10)) == 96
    # A commit may have a later time than the server's clock has now.
    assert lag_seconds(7, after(10), after(11)) == 0


def test_a_reader_had_everything_at_the_last_look_whose_end_it_has_reached() -> None:
    looks = WalHeads()
    assert looks.caught_up(Lsn(100)) is None
    for second, end in ((0, 100), (5, 200), (10, 200), (15, 300)):
        looks.record_end(after(second), Lsn(end))
    assert looks.caught_up(Lsn(99)) is None
    assert looks.caught_up(Lsn(199)) == after(0)
    assert looks.caught_up(Lsn(200)) == after(10)
    assert looks.caught_up(Lsn(1000)) == after(15)
    looks.record_end(after(20), Lsn(2000))
    assert looks.caught_up(Lsn(1000)) == after(15)


def test_looks_of_hours_are_bounded() -> None:
    looks = WalHeads()
    for second in range(10_000):
        looks.record_end(after(second), Lsn(second + 1))
    assert looks.caught_up(Lsn(9_000)) == after(8_999)
    assert len(looks.ahead) == 1_000
