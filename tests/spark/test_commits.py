"""Only what Spark's checkpoint has is acknowledged to the server, whatever options the sink has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark.offsets import AsyncProgressError, Commits
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from tests.postgres.servers import Database
from tests.spark.failures import fails
from tests.spark.streams import Stream
from tests.waiting import eventually


def commits(*calls: tuple[str, int]) -> Commits:
    """Return the commits after some calls; `record_batch` has the end of a batch, which begins where the last one ended."""
    batch_commits, start = Commits(), Lsn(10)
    for name, position in calls:
        if name == "record_batch":
            batch_commits.record_batch(start, Lsn(position))
            start = Lsn(position)
        else:
            getattr(batch_commits, name)(Lsn(position))
    return batch_commits


def test_the_next_batchs_start_is_checkpointed_after_all_earlier_batches() -> None:
    batch_commits = commits(("has", 10), ("record_batch", 20), ("record_commit", 20), ("record_batch", 30))
    assert batch_commits.has(Lsn(30))
    # The same batch is planned again, as by a second action on its rows.
    batch_commits.record_batch(Lsn(20), Lsn(30))
    assert batch_commits.has(Lsn(30))
    # Another source of the query has a batch.
    batch_commits.record_commit(Lsn(30))
    batch_commits.record_batch(Lsn(30), Lsn(30))
    batch_commits.record_batch(Lsn(30), Lsn(40))
    assert batch_commits.has(Lsn(40))


def test_the_first_batch_of_a_process_proves_nothing_until_the_query_has_been_idle(clock: list[float]) -> None:
    batch_commits = commits(("has", 10), ("record_batch", 20))
    assert batch_commits.has(Lsn(10))
    assert not batch_commits.has(Lsn(20))
    clock[0] += 9
    assert not batch_commits.has(Lsn(20))
    clock[0] += 1
    assert batch_commits.has(Lsn(20))


def test_a_batch_of_an_earlier_process_is_reread() -> None:
    batch_commits = commits(("record_batch", 20), ("record_commit", 20), ("record_batch", 30))
    assert batch_commits.has(Lsn(30))


@pytest.mark.parametrize("steps", [(), (("record_commit", 10),)])
def test_a_batch_before_which_not_everything_is_committed_is_refused(steps: tuple[tuple[str, int], ...]) -> None:
    batch_commits = commits(("has", 10), ("record_batch", 20), *steps)
    with pytest.raises(AsyncProgressError, match=r"\[ASYNC_PROGRESS\] .* from 0/14,.*asyncProgressTrackingEnabled"):
        batch_commits.record_batch(Lsn(20), Lsn(30))


@pytest.mark.thorough
@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 tell only what they have committed")
@pytest.mark.parametrize("mode", ["peek", "walsender"])
def test_a_query_with_asynchronous_progress_is_refused_and_continues_without_it(
    spark: Any, db18: Database, tmp_path: Path, mode: str
) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "spark")
    confirmed = query_slot(db18.connection, "spark").confirmed.lsn
    stream = Stream(spark, db18, tmp_path, mode=mode, max_changes_per_batch="1")
    writer = stream.writer(stream.load())
    for name in ("asyncProgressTrackingEnabled", "_asyncProgressTrackingOverrideSinkSupportCheck"):
        writer = writer.option(name, "true")
    # Nothing but the first batch is written to the checkpoint.
    query = writer.option("asyncProgressTrackingCheckpointIntervalMs", "1000000").start()
    for number in range(3):
        db18.execute(f"INSERT INTO t VALUES ({number})")
    with fails("ASYNC_PROGRESS", "asyncProgressTrackingEnabled"):
        query.awaitTermination(120)
    stream.run()
    assert sorted(int(row.after["id"]) for row in stream.frame().collect()) == [0, 1, 2]
    eventually(lambda: query_slot(db18.connection, "spark").confirmed.lsn > confirmed)
