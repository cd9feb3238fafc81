"""Large cases: a large transaction, many tables, a sink slower than the writer. `make soak` runs them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from bench.spark.memory import resident
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from tests.postgres.servers import Database
from tests.spark.streams import EACH_MODE, Stream
from tests.waiting import eventually

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.skipif(not os.environ.get("LOGICALREP_SOAK"), reason="takes minutes; make soak"),
]


@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_transaction_of_a_million_rows(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "spark")
    db18.execute("INSERT INTO t SELECT i, 'value ' || i FROM generate_series(1, 1000000) AS i")
    stream = Stream(spark, db18, tmp_path, mode=mode, retry_timeout="300")
    query = stream.start()
    try:
        eventually(lambda: stream.frame().count() == 1_000_000, query, seconds=300)
    finally:
        query.stop()
    summary = stream.frame().selectExpr("count(DISTINCT ordinal)", "min(ordinal)", "max(ordinal)").first()
    assert tuple(summary) == (1_000_000, 0, 999_999)


def test_ten_thousand_tables(spark: Any, db18: Database, tmp_path: Path) -> None:
    for start in range(0, 10_000, 500):
        with db18.connection.transaction():
            for number in range(start, start + 500):
                db18.execute(f"CREATE TABLE t{number} (id int PRIMARY KEY, column_{number} int)")
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "spark")
    for start in range(0, 10_000, 500):
        with db18.connection.transaction():
            for number in range(start, start + 500):
                db18.execute(f"INSERT INTO t{number} VALUES (1, {number})")
    stream = Stream(spark, db18, tmp_path)
    stream.run()
    rows = stream.frame().selectExpr("table", "after").collect()
    assert {row.table: row.after for row in rows} == {
        f"t{number}": {"id": "1", f"column_{number}": str(number)} for number in range(10_000)
    }


@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_slow_sink_bounds_memory_spool_and_wal(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "spark")
    options = {"spool_bytes": "2m", "segment_bytes": "256k", "max_changes_per_batch": "20000"}
    stream = Stream(spark, db18, tmp_path, mode=mode, **options)
    counted: list[int] = []
    commits: list[int] = []
    confirmed: list[int] = []
    spooled: list[int] = []
    memory: list[int] = []

    def sink(batch: Any, number: int) -> None:
        count, commit = batch.selectExpr("count(*)", "max(commit_lsn)").first()
        if count:
            confirmed.append(query_slot(db18.connection, "spark").confirmed_flush_lsn or 0)
            commits.append(commit)
            spooled.append(sum(path.stat().st_size for path in (tmp_path / "spool").rglob("*.arrow")))
            sizes = resident()
            memory.append(sizes["planner"] + sizes["workers"])
            time.sleep(0.5)
            counted.append(count)

    writer = stream.load().writeStream.foreachBatch(sink)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for start in range(0, 300_000, 2000):
            db18.execute(f"INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series({start}, {start + 1999}) AS i")
        eventually(lambda: sum(counted) >= 300_000, query, seconds=200)
    finally:
        query.stop()
    assert sum(counted) == 300_000
    assert max(spooled) < 8 << 20
    # The server retains no WAL from before the last batch.
    assert all(position > commit for position, commit in zip(confirmed[2:], commits, strict=False))
    assert max(memory) - memory[2] < 200 << 20
