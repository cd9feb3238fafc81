"""Batches that suit the sink: where they end depends on the time of earlier ones, and which rows they have does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logicalrep import Lsn
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.spark.peek import pace as pacing
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.peek.pace import Pace
from tests.postgres.servers import Database
from tests.spark.queries import Query, new_values
from tests.spark.transactions import write_transactions

MIB = 1 << 20
LARGEST = 256 * MIB


@pytest.fixture(autouse=True)
def at_half_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all batches begin at half a second past a whole one."""
    monkeypatch.setattr(time, "time", lambda: 1000.5)


def follow(
    pace: Pace, clock: list[float], seconds: Callable[[int], float], number: int, size: int = LARGEST
) -> list[int]:
    """Return the sizes of batches in MiB through a large backlog, with a sink that takes so long for a size."""
    sizes = []
    for _ in range(number):
        wal = min(pace.bound or size, size)
        pace.record_batch(Lsn(0), Lsn(wal))
        clock[0] += seconds(wal)
        pace.end_batch()
        sizes.append(wal // MIB)
    return sizes


def test_a_slow_sink_gets_batches_of_the_time_that_they_should_take(clock: list[float]) -> None:
    pace = Pace(30)
    sizes = follow(pace, clock, lambda wal: 0.15 + wal / (4 * MIB), 10)
    assert sizes[0] == 256
    assert all(100 <= size <= 120 for size in sizes[1:])
    # It becomes ten times slower, and then fast: sizes follow, within a few batches.
    assert follow(pace, clock, lambda wal: 0.15 + wal / (0.4 * MIB), 20)[-1] <= 13
    assert follow(pace, clock, lambda wal: wal / (100 * MIB), 8)[-1] == 256


def test_a_fast_sink_s_batches_are_not_bound(clock: list[float]) -> None:
    pace = Pace(30)
    assert follow(pace, clock, lambda wal: wal / (9 * MIB), 5) == [256] * 5
    assert pace.bound is None


def test_batches_are_not_smaller_than_what_each_costs_anyway(clock: list[float]) -> None:
    """Forty seconds for each batch, and a second for each 10 MiB: smaller batches would only take longer in total."""
    sizes = follow(Pace(30), clock, lambda wal: 40 + wal / (10 * MIB), 20)
    assert sum(sizes) > 0.8 * 20 * 256
    # The same with a time that does not depend on the size.
    sizes = follow(Pace(30), clock, lambda _: 60, 20)
    assert sum(sizes) > 0.8 * 20 * 256


def test_the_wait_for_a_trigger_s_interval_is_not_the_sink_s(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.02)
    pace = Pace(30)
    assert follow(pace, clock, lambda _: 60, 5, size=20 * MIB) == [20] * 5


@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 call readers otherwise")
@pytest.mark.parametrize("mode", ["peek", "auto"])
def test_a_slow_sink_s_planned_batch_has_the_same_rows_after_a_kill(
    db18: Database, tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(pacing, "LEAST", 128 << 10)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    query = Query(db18, tmp_path, mode=mode, target_seconds_per_batch="1")
    # One transaction, as a receiver plans what has come.
    write_transactions(db18, count=1, rows=4000, width=50)
    rows = new_values(query.plan())
    sizes = [len(rows)]
    query.commit()
    db18.execute(
        "DO $$BEGIN FOR i IN 40..79 LOOP INSERT INTO t SELECT i * 100 + j, repeat('x', 50) FROM "
        "generate_series(0, 99) AS j; COMMIT; END LOOP; END$$"
    )
    clock[0] += 1000
    while len(rows) < 8000:
        planned = query.plan()
        sizes.append(len(planned))
        query.restart()
        assert query.rows() == planned
        rows += new_values(planned)
        query.commit()
    query.restart(reopen=False)
    assert sizes[0] == 4000
    assert 0 < sizes[1] < 2000
    assert rows == [str(number) for number in range(8000)]
