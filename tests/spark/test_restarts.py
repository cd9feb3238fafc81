"""A query that is stopped and started with other limits goes on where its checkpoint is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.servers import Database
from tests.spark.streams import Stream
from tests.spark.workload import prepare

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


@pytest.mark.parametrize("mode", ["peek", "walsender"])
def test_a_restart_with_smaller_batches(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, mode=mode)
    db18.execute(*(f"INSERT INTO plain VALUES ({number})" for number in range(10)))
    stream.run(max_changes_per_batch="8")
    db18.execute(*(f"INSERT INTO plain VALUES ({number})" for number in range(10, 15)))
    # Spark 4.0 and 4.1 have one batch for each run.
    runs = 0
    while stream.frame().count() < 15 and runs < 15:
        stream.run(max_changes_per_batch="1")
        runs += 1
    stream.run()
    rows = stream.frame().selectExpr("CAST(after['id'] AS int) AS id").orderBy("id").collect()
    assert [row.id for row in rows] == list(range(15))


@pytest.mark.parametrize("mode", ["peek", "walsender"])
def test_a_slot_made_by_the_query(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18)
    stream = Stream(spark, db18, tmp_path, mode=mode, create_slot="true")
    stream.run()
    db18.execute("INSERT INTO plain VALUES (1)")
    stream.run()
    db18.execute("INSERT INTO plain VALUES (2)")
    stream.run()
    assert [row.after["id"] for row in stream.frame().orderBy("commit_lsn").collect()] == ["1", "2"]
