"""Tasks on Spark's executors: which items share a job, and whose errors are whose."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import EngineEndedError, Shared
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs
from logicalrep.pipeline.run import run as replicating
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep.postgres.connection import ConnectionSettings


def _doubled(number: int) -> int:
    time.sleep(0.01)
    if number == 13:
        raise DamagedError("13 is missing")
    return 2 * number


def _turned(data: bytes) -> bytes:
    return data[::-1]


def _first_of(shared: Shared[list[bytes]]) -> int:
    return shared.value[0][0]


def _last_job(spark: Any) -> int:
    """Return the number of the last job; Spark forgets those before the last fifty."""
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(), default=-1)


def test_items_of_many_threads_are_few_jobs(spark: Any) -> None:
    engine, last_job = SparkEngine(ClassicJobs(spark)), _last_job(spark)
    with ThreadPoolExecutor(40) as pool:
        futures = [pool.submit(engine.run_together, _doubled, number, 1000) for number in range(80)]
        errors = {number: future.exception() for number, future in enumerate(futures)}
    assert {number for number, error in errors.items() if error is not None} == {13}
    assert isinstance(errors[13], DamagedError)
    results = [future.result() for number, future in enumerate(futures) if number != 13]
    assert results == [2 * number for number in range(80) if number != 13]
    # Four of one item at first, and then some of up to 32.
    assert _last_job(spark) - last_job <= 16


def test_items_that_are_large_together_do_not_share_a_job(spark: Any) -> None:
    engine, last_job = SparkEngine(ClassicJobs(spark)), _last_job(spark)
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(lambda number: engine.run_together(_doubled, number, 50 << 20), range(12))) == [
            2 * number for number in range(12)
        ]
    assert _last_job(spark) - last_job == 12


def test_items_outcomes_and_shared_values_do_not_pass_through_java_on_one_machine(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, sent, parallelize = SparkEngine(ClassicJobs(spark)), [], spark.sparkContext.parallelize
    monkeypatch.setattr(spark.sparkContext, "broadcast", None)

    def counted(items: Any, tasks: int) -> Any:
        sent.append(len(pickle.dumps([*items])))
        return parallelize(items, tasks)

    monkeypatch.setattr(spark.sparkContext, "parallelize", counted)
    items = [bytes([number]) * (4 << 20) for number in range(3)]
    assert engine.run(_turned, items, 0) == [item[::-1] for item in items]
    with engine.share(items) as shared:
        assert engine.run(_first_of, [shared, shared], 0) == [0, 0]
    assert len(sent) == 2
    assert max(sent) < 1000


def test_the_command_exits_after_repeated_exits_of_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: list[float]
) -> None:
    """It is started again three times within an hour."""
    starts = 0

    def follow(*_: object) -> None:
        nonlocal starts
        starts += 1
        # The first one ends long before the others.
        clock[0] += 4000 if starts == 2 else 100
        raise EngineEndedError("its Java has ended")

    monkeypatch.setattr(replicating, "follow", follow)
    settings = ReplicateSettings(dsn=ConnectionSettings("dbname=x"), to=str(tmp_path), engine="spark")
    with pytest.raises(EngineEndedError, match=r"\[JAVA_ENDED\]"):
        replicating.replicate_with(settings, Observers())
    assert starts == 5
