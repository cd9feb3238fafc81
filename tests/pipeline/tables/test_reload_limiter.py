"""Loads of a table are spaced out by reason; loads of partitions count per partition."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables import reload_limiter
from logicalrep.pipeline.tables.reload_limiter import ReloadLimiter, pause_until

FIRST_PAUSE = Limits().load_pause_seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1_000_000.0]
    monkeypatch.setattr(reload_limiter, "time", SimpleNamespace(time=lambda: moment[0]))
    return moment


def test_the_third_load_for_one_reason_waits_also_of_one_partition(tmp_path: Path, clock: list[float]) -> None:
    counts = ReloadLimiter(Storage(str(tmp_path)))
    for partitions in ((7,), (8,), (7, 8), (7,), (8,), (8, 7)):
        assert counts.add("public/t", "attached", partitions) is None
    for number in (1, 2):
        assert counts.add("public/t", f"{number} rows are missing") is None
    waiting: list[tuple[str, tuple[int, ...]]] = [
        ("attached", (7,)),
        ("attached", (7, 8)),
        ("3,456 rows are missing", ()),
    ]
    for reason, of in waiting:
        assert counts.add("public/t", reason, of) == clock[0] + FIRST_PAUSE
    assert counts.add("public/t", "attached") is None
    assert counts.add("public/u", "attached", (7,)) is None
    counts.clear("public/t")
    assert counts.add("public/t", "attached", (7,)) is None


def test_pauses_double_up_to_an_hour_and_end_after_two_quiet_hours(tmp_path: Path, clock: list[float]) -> None:
    counts, pauses = ReloadLimiter(Storage(str(tmp_path))), []
    for _ in range(12):
        begin = counts.add("public/t", "changed")
        pauses.append(0.0 if begin is None else begin - clock[0])
        # The load begins, and is needed again right away.
        clock[0] += pauses[-1]
    assert pauses == [0, 0, *(FIRST_PAUSE * 2**number for number in range(7)), *[3600] * 3]
    clock[0] += 7100
    assert counts.add("public/t", "changed") == clock[0] + 3600
    clock[0] += 3600 + 7201
    assert counts.add("public/t", "changed") is None


def test_a_clock_that_was_set_back_prolongs_no_pause(tmp_path: Path, clock: list[float]) -> None:
    counts = ReloadLimiter(Storage(str(tmp_path)))
    for _ in range(3):
        counts.add("public/t", "changed")
    begin = counts.add("public/t", "changed")
    assert begin is not None
    assert pause_until(begin) == begin - clock[0] == 2 * FIRST_PAUSE
    clock[0] -= 100_000
    assert pause_until(begin) == 0
    assert counts.add("public/t", "changed") is None
