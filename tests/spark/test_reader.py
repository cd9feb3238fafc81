"""The streaming readers, called as Spark calls them, and killed and restarted at the worst moments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.postgres.publications import PublicationError
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark.offsets import position_of
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.walsender import stream as walsender_stream
from logicalrep.transactions import logs
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.spark.queries import MODES, Query, create_table_and_slot, new_values
from tests.spark.streams import table_schema
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 call readers otherwise")


def insert_in_transactions_of(rows: int, db: Database) -> None:
    """Insert 20,000 rows of about 100 bytes each."""
    for number in range(0, 20_000, rows):
        db.execute(f"INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series({number}, {number + rows - 1}) AS i")


@pytest.fixture
def db(db18: Database) -> Database:
    create_table_and_slot(db18)
    return db18


@pytest.mark.parametrize("limit", [{}, {"max_changes_per_batch": "1"}])
@pytest.mark.parametrize("mode", MODES)
def test_a_publication_that_was_dropped_and_recreated(
    db: Database, tmp_path: Path, mode: str, limit: dict[str, str]
) -> None:
    """Changes in between must not be silently left out."""
    query = Query(db, tmp_path, mode=mode, **limit)
    db.execute("INSERT INTO t VALUES (1)")
    assert new_values(query.plan()) == ["1"]
    query.commit()
    db.execute("DROP PUBLICATION p", "INSERT INTO t VALUES (2)", "CREATE PUBLICATION p FOR ALL TABLES")
    for number in (3, 4):
        db.execute(f"INSERT INTO t VALUES ({number})")
        with pytest.raises(PublicationError):
            query.plan()
        query.restart()
    query.restart(reopen=False)


def test_what_is_planned_can_be_read_when_the_receiver_has_ended(db: Database, tmp_path: Path) -> None:
    query = Query(db, tmp_path)
    db.execute("INSERT INTO t VALUES (1)")
    while query.end["lsn"] == query.start["lsn"]:
        query.end = query.reader.latestOffset(query.start, None)
    parts = query.reader.partitions(query.start, query.end)
    db.execute("DROP PUBLICATION p", "INSERT INTO t VALUES (2)")
    eventually(lambda: query.reader.receiver.error is not None)
    rows = [row for part in parts for batch in query.reader.read(part) for row in batch.to_pylist()]
    assert new_values(rows) == ["1"]
    query.restart(reopen=False)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def two_phase(db: Database) -> Database:
    db.rows("SELECT pg_drop_replication_slot('s'), pg_create_logical_replication_slot('s', 'pgoutput', false, true)")
    return db


def prepare(db: Database, gid: str, rows: str) -> None:
    db.execute(
        "BEGIN", f"INSERT INTO t SELECT i, 'x' FROM generate_series({rows}) AS i", f"PREPARE TRANSACTION '{gid}'"
    )


def test_a_prepared_transaction_that_is_decided_but_not_committed_by_spark(two_phase: Database, tmp_path: Path) -> None:
    query = Query(two_phase, tmp_path, two_phase="true")
    prepare(two_phase, "g", "1, 1")
    two_phase.execute("INSERT INTO t VALUES (2)")
    assert new_values(query.plan()) == ["2"]
    query.commit()
    two_phase.execute("COMMIT PREPARED 'g'")
    assert new_values(query.plan()) == ["1"]
    time.sleep(0.5)
    query.restart()
    assert new_values(query.rows()) == ["1"]
    query.restart(reopen=False)


@pytest.mark.parametrize("breaks", [False, True])
def test_a_prepared_transaction_that_has_not_been_sent_a_second_time(
    two_phase: Database, tmp_path: Path, breaks: bool
) -> None:
    query = Query(two_phase, tmp_path, two_phase="true")
    prepare(two_phase, "g", "1, 100000")
    two_phase.execute("INSERT INTO t VALUES (0)")
    assert new_values(query.plan(60)) == ["0"]
    query.commit()
    for _ in range(2):
        query.restart()
        query.reader.start_receiver(position_of(query.start).lsn)
        query.reader.commit(query.start)
        if breaks:
            eventually(lambda: query_slot(two_phase.connection, "s").active_pid is not None)
            two_phase.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        time.sleep(1)
    two_phase.execute("COMMIT PREPARED 'g'")
    assert len(query.plan(60)) == 100_000
    query.restart(reopen=False)


def test_decisions_on_what_was_prepared_before_the_slot_s_position(two_phase: Database, tmp_path: Path) -> None:
    query = Query(two_phase, tmp_path, two_phase="true")
    position = position_of(query.start).lsn
    prepare(two_phase, "a", "1, 1")
    prepare(two_phase, "b", "2, 2")
    two_phase.execute("COMMIT PREPARED 'a'")
    assert new_values(query.plan()) == ["1"]
    query.commit()
    eventually(lambda: query_slot(two_phase.connection, "s").confirmed.lsn > position)
    query.restart()
    two_phase.execute("INSERT INTO t VALUES (3)")
    assert new_values(query.plan()) == ["3"]
    query.commit()
    two_phase.execute("COMMIT PREPARED 'b'")
    assert new_values(query.plan()) == ["2"]
    query.restart(reopen=False)


def test_repeated_messages_do_not_fill_the_spool(db: Database, tmp_path: Path) -> None:
    query = Query(db, tmp_path, segment_bytes="64k", spool_bytes="256k")
    db.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 20000) AS i")
    assert len(query.plan()) == 20_000
    # Spark has committed the batch, and the reader was killed before Spark told it.
    query.start = query.end
    query.restart()
    db.execute("INSERT INTO t VALUES (0)")
    assert new_values(query.plan()) == ["0"]
    query.restart(reopen=False)


def test_a_backlog_is_not_read_in_crumbs(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch for each hundred rows would cost more than the rows."""
    monkeypatch.setattr(walsender_stream, "LONGEST_WAIT", 60.0)
    query = Query(db, tmp_path, rows_per_record_batch="100")
    insert_in_transactions_of(1000, db)
    query.reader.prepareForTriggerAvailableNow()
    assert len(query.plan()) == 20_000
    query.restart(reopen=False)


def test_a_query_that_is_far_behind_does_not_read_in_crumbs(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walsender_stream, "TARGET_BATCH", 400_000)
    monkeypatch.setattr(walsender_stream, "LONGEST_WAIT", 60.0)
    monkeypatch.setattr(walsender_stream, "TARGET_WAIT", 60.0)
    query = Query(db, tmp_path, rows_per_record_batch="100")
    insert_in_transactions_of(100, db)
    assert len(query.plan()) >= 3000
    query.restart(reopen=False)


@pytest.mark.parametrize("has_admission_control", [True, False])
def test_a_backlog_that_is_larger_than_the_spool(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_admission_control: bool
) -> None:
    """Batches end where the spool is full, even the only batch of Spark 4.0 and 4.1 for Trigger.AvailableNow."""
    insert_in_transactions_of(1000, db)
    small = {"segment_bytes": "64k", "spool_bytes": "256k", "rows_per_record_batch": "1000", "retry_timeout": "2"}
    query = Query(db, tmp_path, **small)
    monkeypatch.setattr(walsender_stream, "HAS_ADMISSION_CONTROL", has_admission_control)
    if has_admission_control:
        query.reader.prepareForTriggerAvailableNow()
    values = new_values(query.plan())
    assert 0 < len(values) < 20_000
    while len(values) < 20_000:
        query.commit()
        values += new_values(query.plan())
    assert values == [str(number) for number in range(20_000)]
    query.restart(reopen=False)


def test_a_planned_batch_that_is_larger_than_the_spool(db: Database, tmp_path: Path) -> None:
    query = Query(db, tmp_path, segment_bytes="64k", rows_per_record_batch="1000")
    insert_in_transactions_of(1000, db)
    query.reader.prepareForTriggerAvailableNow()
    assert len(query.plan()) == 20_000
    query.restart(spool_bytes=256 << 10)
    assert len(query.rows()) == 20_000
    query.restart(reopen=False)


@pytest.mark.thorough
def test_a_transaction_that_takes_longer_than_the_server_may_be_away(db: Database, tmp_path: Path) -> None:
    query = Query(db, tmp_path, protocol_version="1")
    db.execute("INSERT INTO t SELECT i, repeat('x', 50) FROM generate_series(1, 200000) AS i")

    def read() -> float:
        began = time.monotonic()
        query.reader.prepareForTriggerAvailableNow()
        query.end = query.reader.latestOffset(query.start, None)
        assert len(query.rows()) == 200_000
        return time.monotonic() - began

    # The server reads all of it before it sends the first row, which takes a third of the time.
    query.restart(retry_timeout=0.7 * read())
    read()
    query.restart(reopen=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_table_with_columns_of_the_feed_s_names(db: Database, tmp_path: Path, mode: str) -> None:
    db.execute("CREATE TABLE u (id int PRIMARY KEY, commit_lsn bigint NOT NULL, commit_timestamp text)")
    schema = table_schema(db.connection, TableName("public", "u"), ("p",))
    query = Query(db, tmp_path, schema, table="public.u", mode=mode)
    ids: list[Any] = []
    for first in (0, 100):
        for number in range(first, first + 100):
            db.execute(f"INSERT INTO u VALUES ({number}, 0, 'x')")
        while len(ids) < first + 100:
            ids += [row["id"] for row in query.plan()]
            query.commit()
        query.restart()
    assert ids == list(range(200))
    query.restart(reopen=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_dot_in_a_name(db: Database, tmp_path: Path, mode: str) -> None:
    """Two tables have the same name once a dot joins it to the schema's."""
    tables = {TableName("a", "b.c"): 1, TableName("a.b", "c"): 2}
    for table, number in tables.items():
        db.execute(f'CREATE SCHEMA "{table.schema}"', f"CREATE TABLE {table} (id int PRIMARY KEY, n{number} int)")
    for table, number in tables.items():
        schema = table_schema(db.connection, table, ("p",))
        assert schema.names[:2] == ["id", f"n{number}"]
        for reader in ("typed", "feed"):
            create_slot(db.connection, f"{reader}_{number}")
        typed = Query(db, tmp_path, schema, table=str(table), mode=mode, slot=f"typed_{number}")
        feed = Query(db, tmp_path, tables=f"public.t, {table}", mode="peek", slot=f"feed_{number}")
        db.execute("BEGIN")
        for written, value in tables.items():
            db.execute(f"INSERT INTO {written} VALUES ({10 * number + value}, {value})")
        db.execute(f"TRUNCATE {', '.join(map(str, tables))}", "COMMIT")
        assert [row["id"] for row in typed.plan()] == [10 * number + number, None]
        assert [row["relation_id"] for row in feed.plan()] == [db.value(f"SELECT '{table}'::regclass::oid")] * 2
        for query in (typed, feed):
            query.commit()
            query.restart(reopen=False)


def test_a_table_with_a_column_of_a_typed_table_s_names(db: Database) -> None:
    db.execute("CREATE TABLE u (id int PRIMARY KEY, _ordinal bigint)")
    with pytest.raises(SchemaMismatchError, match=r"public\.u has a column _ordinal, a name"):
        table_schema(db.connection, TableName("public", "u"), ("p",))


def test_a_slot_that_was_moved_is_an_error_while_nothing_is_written(db: Database, tmp_path: Path) -> None:
    query = Query(db, tmp_path, mode="peek")
    db.execute("INSERT INTO t VALUES (1)")
    advance_slot(db.connection, query_slot(db.connection, "s"), query_wal_head(db.connection))
    with pytest.raises(LostPositionError, match="acknowledged by another reader"):
        query.reader.latestOffset(query.start, None)
    query.restart(reopen=False)


def test_an_idle_query_polls_at_its_interval(db: Database, tmp_path: Path) -> None:
    query = Query(db, tmp_path, mode="peek", poll_interval="3")
    assert query.reader.latestOffset(query.start, None) == query.start
    db.execute("INSERT INTO t VALUES (1)")
    began = time.monotonic()
    assert new_values(query.plan()) == ["1"]
    assert time.monotonic() - began > 2
    query.restart(reopen=False)


def test_an_idle_walsender_asks_for_nothing_at_each_look(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(db, tmp_path)
    query.reader.latestOffset(query.start, None)
    asked: list[object] = []
    run = query.reader.run

    def counted(action: Any) -> Any:
        asked.append(action)
        return run(action)

    monkeypatch.setattr(query.reader, "run", counted)
    for _ in range(3):
        assert query.reader.latestOffset(query.start, None) == query.start
    assert asked == []
    query.restart(reopen=False)


@pytest.mark.parametrize("options", [{"relations": "true"}, {"table": "public.t", "new_columns": "null"}])
def test_a_new_column_is_warned_of_once(
    db: Database,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
) -> None:
    """The warning comes at the start, while the slot is before the change, and at the first row with the column."""
    monkeypatch.setattr(logs, "SAID", set())
    db.execute("INSERT INTO t VALUES (1)", "ALTER TABLE t ADD c int DEFAULT 7", "INSERT INTO t VALUES (2)")
    schema = table_schema(db.connection, TableName("public", "t"), ("p",)) if "table" in options else None
    query = Query(db, tmp_path, schema, mode="peek", **options)
    assert len(query.plan()) > 1
    query.restart()
    query.rows()
    query.restart()
    warnings = [record.getMessage().split(":")[0] for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["public.t.c came with ADD COLUMN ... DEFAULT", "public.t has the new column c"]


@pytest.mark.thorough
def test_a_slot_of_a_standby_that_is_dropped_ends_no_query(
    db18: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, with a warning, until the setting no longer names it."""
    monkeypatch.setattr(logs, "SAID", set())
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
        "SELECT pg_create_physical_replication_slot('standby', true)",
        "ALTER SYSTEM SET synchronized_standby_slots = 'standby'",
        "SELECT pg_reload_conf()",
    )
    try:
        eventually(lambda: db18.value("SHOW synchronized_standby_slots") == "standby")
        query = Query(db18, tmp_path, mode="peek", create_slot="true", failover="true", poll_interval="0")
        db18.execute("SELECT pg_drop_replication_slot('standby')", "INSERT INTO t VALUES (1)")
        for _ in range(3):
            assert query.reader.latestOffset(query.start, None) == query.start
        (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
        assert warning.startswith("The server sends nothing new of replication slot 's': synchronized_standby_slots")
    finally:
        db18.execute("ALTER SYSTEM RESET synchronized_standby_slots", "SELECT pg_reload_conf()")
    assert new_values(query.plan()) == ["1"]
    query.restart(reopen=False)
