"""A query that is restarted, also with other limits, continues from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from tests.postgres.servers import Database, back_up, connect_writer, installation, restore, take_over
from tests.spark.failures import fails
from tests.spark.streams import EACH_MODE, Stream
from tests.spark.workload import prepare
from tests.waiting import eventually


@pytest.mark.thorough
@pytest.mark.parametrize("mode", EACH_MODE)
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


@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_slot_created_by_the_query(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18)
    stream = Stream(spark, db18, tmp_path, mode=mode, create_slot="true")
    stream.run()
    db18.execute("INSERT INTO plain VALUES (1)")
    stream.run()
    db18.execute("INSERT INTO plain VALUES (2)")
    stream.run()
    assert [row.after["id"] for row in stream.frame().orderBy("commit_lsn").collect()] == ["1", "2"]


@pytest.mark.thorough
def test_prepared_transactions_that_overlap(spark: Any, db18: Database, tmp_path: Path) -> None:
    """An undecided transaction holds the slot back, so after a restart another one's decision is sent alone."""
    prepare(db18)
    create_slot(db18.connection, "spark", two_phase=True)
    stream = Stream(spark, db18, tmp_path, mode="walsender", two_phase="true")
    for number, gid in enumerate(("first", "second", "third")):
        db18.execute("BEGIN", f"INSERT INTO plain VALUES ({number})", f"PREPARE TRANSACTION '{gid}'")
    batches = []
    for gid in ("first", "second", "third"):
        db18.execute(f"COMMIT PREPARED '{gid}'")
        for _ in range(2):
            stream.run()
            batches.append([row.after["id"] for row in stream.frame().orderBy("commit_lsn").collect()])
    assert batches == [["0"], ["0"], ["0", "1"], ["0", "1"], ["0", "1", "2"], ["0", "1", "2"]]


@pytest.mark.thorough
def test_prepared_transactions_without_changes(spark: Any, db: Database, tmp_path: Path) -> None:
    """PostgreSQL 15 to 17 send only the decision on a transaction that just locked rows, and 18 no Begin Prepare."""
    prepare(db)
    create_slot(db.connection, "spark", two_phase=True)
    db.execute("INSERT INTO plain VALUES (0)")
    stream = Stream(spark, db, tmp_path, mode="walsender", two_phase="true")
    for number, decision in enumerate(("COMMIT", "ROLLBACK", "COMMIT")):
        stream.run()
        db.execute("BEGIN", "SELECT FROM plain FOR UPDATE", "PREPARE TRANSACTION 'g'", f"{decision} PREPARED 'g'")
        if number:
            db.execute(f"INSERT INTO plain VALUES ({number})")
    query = stream.start()
    db.execute("BEGIN", "SELECT FROM plain FOR UPDATE", "PREPARE TRANSACTION 'g'", "COMMIT PREPARED 'g'")
    db.execute("INSERT INTO plain VALUES (3)")
    eventually(lambda: stream.frame().count() == 4, query)
    query.stop()
    assert sorted(row.after["id"] for row in stream.frame().collect()) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("moved", [False, True])
def test_a_prepared_transaction_that_was_skipped(spark: Any, db: Database, tmp_path: Path, moved: bool) -> None:
    prepare(db)
    create_slot(db.connection, "spark", two_phase=True)
    stream = Stream(spark, db, tmp_path, mode="walsender", two_phase="true")
    if moved:
        stream.run()
    db.execute("BEGIN", "INSERT INTO plain VALUES (1)", "PREPARE TRANSACTION 'g'")
    slot = query_slot(db.connection, "spark")
    advance_slot(db.connection, slot, query_wal_head(db.connection))
    db.execute("COMMIT PREPARED 'g'")
    # A continued query finds that another reader has moved the slot; a new one finds that the changes are missing.
    error = (
        ("POSITION_PASSED", "acknowledged by another reader")
        if moved
        else ("MESSAGE_OUT_OF_PLACE", "the changes of the prepared transaction 'g' were sent before the reader started")
    )
    for _ in range(2):
        with fails(*error):
            stream.run()


@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark before 4.2 tells where a query is when it has a batch")
@pytest.mark.parametrize(
    ("mode", "committed"),
    [
        ("auto", False),
        pytest.param("peek", False, marks=pytest.mark.thorough),
        pytest.param("peek", True, marks=pytest.mark.thorough),
        pytest.param("walsender", True, marks=pytest.mark.thorough),
        pytest.param("walsender", False, marks=pytest.mark.thorough),
    ],
)
def test_a_server_restored_from_a_backup(spark: Any, tmp_path: Path, mode: str, committed: bool) -> None:
    """The server lacks changes that the query has committed, or was to read again."""
    with LocalServer(installation(18)) as server:
        database = _prepared(server)
        stream = _ahead_of_a_backup(spark, database, tmp_path, mode=mode, committed=committed)
        restore(server, tmp_path / "backup")
        with fails("WAL_DIVERGED", r"the server's WAL ends at .*restored from a backup"):
            stream.run()
        assert _confirmed(database) <= query_wal_head(database.connection)


@pytest.mark.parametrize(
    ("mode", "committed"),
    [
        ("auto", True),
        pytest.param("peek", False, marks=pytest.mark.thorough),
        pytest.param("peek", True, marks=pytest.mark.thorough),
        pytest.param("walsender", True, marks=pytest.mark.thorough),
    ],
)
def test_a_server_that_took_over_behind_the_query(spark: Any, tmp_path: Path, mode: str, committed: bool) -> None:
    """The server's own changes have LSNs of other changes that the query has read: they would be left out as known."""
    with LocalServer(installation(18)) as server:
        database = _prepared(server)
        stream = _ahead_of_a_backup(spark, database, tmp_path, mode=mode, committed=committed)
        take_over(server, tmp_path / "backup")
        database.reconnect()
        confirmed = _confirmed(database)
        _insert(database, *range(100, 1000))
        if not committed and not HAS_ADMISSION_CONTROL:
            # A run of Spark 4.0 and 4.1 with an unfinished batch has no other batch, and the sink has that one already.
            stream.run()
        with fails("WAL_DIVERGED", r"of timeline 1, but the server is on timeline 2, which left it at"):
            stream.run()
        assert _confirmed(database) == confirmed


@pytest.mark.thorough
@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_server_that_took_over_with_all_that_was_read(spark: Any, tmp_path: Path, mode: str) -> None:
    with LocalServer(installation(18)) as server:
        database = _prepared(server)
        stream = Stream(spark, database, tmp_path, mode=mode)
        _insert(database, 1)
        stream.run()
        back_up(server, tmp_path / "behind")
        _insert(database, 2)
        back_up(server, tmp_path / "ahead")
        take_over(server, tmp_path / "ahead")
        database.reconnect()
        for number in range(3, 6):
            _insert(database, number)
            stream.run()
        ids = [row.after["id"] for row in stream.frame().orderBy("commit_lsn").collect()]
        assert ids == ["1", "2", "3", "4", "5"]
        offsets = tmp_path / "checkpoint" / "offsets"
        assert '"timeline": 2' in (offsets / _batches(offsets)[-1]).read_text()
        # Another server from the same backup has a timeline of the same number.
        take_over(server, tmp_path / "behind")
        database.reconnect()
        _insert(database, *range(100, 1000))
        with fails("WAL_DIVERGED", r"of a timeline 2 that began at .* server's timeline 2 began at"):
            stream.run()


def _prepared(server: LocalServer) -> Database:
    database = Database(server, "postgres", 18, connect_writer(server.dsn))
    prepare(database, "spark")
    return database


def _ahead_of_a_backup(spark: Any, database: Database, folder: Path, *, mode: str, committed: bool) -> Stream:
    """Return a stream that has read past a backup in this folder; its last batch is committed or unfinished."""
    stream = Stream(spark, database, folder, mode=mode)
    _insert(database, 1)
    stream.run()
    back_up(database.server, folder / "backup")
    _insert(database, *range(2, 100))
    stream.run()
    if not committed:
        _forget_the_last_commit(folder)
    return stream


def _insert(database: Database, *numbers: int) -> None:
    """Insert each number in a transaction; the server may have been restarted since the last one."""
    database.reconnect()
    for number in numbers:
        database.execute(f"INSERT INTO plain VALUES ({number})")


def _confirmed(database: Database) -> Lsn:
    database.reconnect()
    return query_slot(database.connection, "spark").confirmed.lsn


def _batches(folder: Path) -> list[str]:
    return sorted((file.name for file in folder.iterdir() if file.name.isdecimal()), key=int)


def _forget_the_last_commit(folder: Path) -> None:
    commits = folder / "checkpoint" / "commits"
    last = _batches(commits)[-1]
    for log in commits.glob(f"*{last}*"):
        log.unlink()
