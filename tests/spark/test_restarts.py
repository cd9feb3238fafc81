"""A query that is stopped and started with other limits goes on where its checkpoint is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep_pipeline.connection import ConnectionSettings
from logicalrep_pipeline.server import LocalServer
from logicalrep_pipeline.spark.admission import HAS_ADMISSION_CONTROL
from tests.server.servers import Database, back_up, installation, restore
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


@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark before 4.2 tells where a query is when it has a batch")
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("mode", ["peek", "walsender"])
def test_a_server_restored_from_a_backup(spark: Any, tmp_path: Path, mode: str, committed: bool) -> None:
    """It has not what the query has committed, or was to read again."""
    with LocalServer(installation(18)) as server:

        def insert(number: int) -> None:
            with database.settings.connect() as connection:
                connection.execute("INSERT INTO plain VALUES (%s)", (number,))

        database = Database(server, "postgres", 18, ConnectionSettings(server.dsn).connect())
        prepare(database, "spark")
        database.connection.close()
        stream = Stream(spark, database, tmp_path, mode=mode)
        insert(1)
        stream.run()
        back_up(server, tmp_path / "backup")
        for number in range(2, 100):
            insert(number)
        stream.run()
        if not committed:
            for log in (tmp_path / "checkpoint" / "commits").glob("*1*"):
                log.unlink()
        restore(server, tmp_path / "backup")
        with pytest.raises(Exception, match=r"the server's WAL ends at .*restored from a backup"):
            stream.run()
        confirmed = "SELECT confirmed_flush_lsn <= pg_current_wal_flush_lsn() FROM pg_replication_slots"
        with database.settings.connect() as connection:
            assert connection.execute(confirmed).fetchall() == [(True,)]
