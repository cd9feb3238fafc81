"""mode = auto: which reader a batch has, and that it has the same rows whoever reads it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from conformance.rows import run
from logicalrep import Lsn
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep.spark import auto, feed_schema
from logicalrep.spark.auto import PEEK_BACKLOG, RECEIVE_BACKLOG, suits_peek
from logicalrep.spark.peek import stream as peek_stream
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.peek.slot_range import SlotRange
from logicalrep.spark.schemas import arrow_schema
from logicalrep.spark.walsender import receiver as receiving
from logicalrep.spark.walsender import stored_rows
from logicalrep.spark.walsender.stored_rows import CarriedRows, RowsInMemory
from tests.postgres.servers import Database, connect_writer, installation, start_standby_of
from tests.spark.queries import Query, new_values
from tests.spark.workload import prepare as prepare_tables
from tests.waiting import eventually

needs_admission_control = pytest.mark.skipif(
    not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 call readers otherwise"
)
MIB = 1 << 20


@pytest.fixture
def db(db18: Database) -> Database:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    return db18


@pytest.fixture
def query(db: Database, tmp_path: Path) -> Iterator[Query]:
    started_query = Query(db, tmp_path, mode="auto")
    yield started_query
    started_query.restart(reopen=False)


def kinds(query: Query) -> set[type]:
    """Return the kinds of partitions of the planned batch."""
    return {type(part) for part in query.reader.partitions(query.start, query.end)}


def identity(row: dict[str, Any]) -> int:
    """Return the id in a row of the feed or of a table."""
    return int(row["id"] if "id" in row else dict(row["after"] or ()).get("id", 0))


def slot(restart: int, head: int) -> Slot:
    return Slot(
        name="s", plugin="pgoutput", database="d", active_pid=None, restart_lsn=Lsn(restart),
        confirmed_flush_lsn=Lsn(restart), two_phase=False, failover=False, lost=None, head=Lsn(head),
        sent_up_to=Lsn(head), useless_standbys=(), timeline=None,
        time=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("restart", "behind", "state", "peeks"),
    [
        (0, 0, {}, False),
        (0, RECEIVE_BACKLOG, {}, False),
        (0, RECEIVE_BACKLOG + 1, {}, True),
        (0, 1, {"has_end": True}, True),
        (0, 0, {"has_end": True}, False),
        (0, PEEK_BACKLOG, {"receives": True}, False),
        (0, PEEK_BACKLOG + 1, {"receives": True}, True),
        # Behind an open transaction each peek decodes from that transaction's start.
        (2 * PEEK_BACKLOG, PEEK_BACKLOG, {}, True),
        (2 * PEEK_BACKLOG + 1, PEEK_BACKLOG, {}, False),
        (512 * MIB, 10_000 * MIB, {}, True),
        (513 * MIB, 10_000 * MIB, {}, False),
        (513 * MIB, 10_000 * MIB, {"has_end": True}, False),
    ],
)
def test_the_choice(restart: int, behind: int, state: dict[str, bool], peeks: bool) -> None:
    position = 10_000 * MIB
    candidate = slot(position - restart, position + behind)
    assert suits_peek(candidate, Lsn(position), **({"receives": False, "has_end": False} | state)) == peeks


@needs_admission_control
def test_far_behind_by_peek_and_near_the_end_by_walsender(
    db: Database, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "RECEIVE_BACKLOG", 1 << 20)
    db.execute("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 9000) AS i")
    assert len(query.plan()) == 9000
    assert kinds(query) == {SlotRange}
    query.commit()
    confirmed = query_slot(db.connection, "s").confirmed.lsn
    for number in (9001, 9002):
        db.execute(f"INSERT INTO t VALUES ({number})")
        assert new_values(query.plan()) == [str(number)]
        assert kinds(query) == {CarriedRows}
        query.commit()
    eventually(lambda: query_slot(db.connection, "s").confirmed.lsn > confirmed)
    assert query_slot(db.connection, "s").active_pid is not None
    # It falls behind.
    monkeypatch.setattr(auto, "PEEK_BACKLOG", 1 << 20)
    monkeypatch.setattr(auto, "PAUSE", 0)
    query.reader.next_check = 0.0
    query.reader.walsender.receiver.stop()
    db.execute("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(10001, 20000) AS i")
    assert len(query.plan()) == 10_000
    assert kinds(query) == {SlotRange}


@needs_admission_control
@pytest.mark.parametrize("options", [{}, {"messages": "true"}, {"table": "public.plain"}])
def test_a_batch_that_one_plans_has_the_same_rows_by_the_other(
    db18: Database, tmp_path: Path, options: dict[str, str]
) -> None:
    """Each batch is killed after it was read by walsender, is read again by peek, and by another walsender."""
    from logicalrep.transactions.table_names import TableName
    from tests.spark.streams import table_schema

    db18.execute("ALTER SYSTEM SET logical_decoding_work_mem = '64kB'", "SELECT pg_reload_conf()")
    try:
        prepare_tables(db18, "s")
        schema = table_schema(db18.connection, TableName("public", "plain"), ("p",)) if "table" in options else None
        query = Query(db18, tmp_path, schema, mode="auto", **options)
        seen: list[dict[str, Any]] = []
        for seed in (1, 2):
            run(db18.connection, seed, 8)
            # A message before a savepoint that is rolled back: a streaming session cannot tell that it is undone.
            db18.execute(
                "BEGIN",
                "SAVEPOINT a",
                "SELECT pg_logical_emit_message(true, 'm', 'undone')",
                f"INSERT INTO plain SELECT i, repeat('x', 99) FROM generate_series({seed}000001, {seed}001200) AS i",
                "ROLLBACK TO a",
                f"INSERT INTO plain SELECT i, repeat('x', 99) FROM generate_series({seed}000001, {seed}000800) AS i",
                "COMMIT",
                "SELECT pg_logical_emit_message(false, 'm', 'outside')",
            )
            while not any(identity(row) == seed * 1_000_000 + 800 for row in seen):
                received = query.plan()
                assert kinds(query) == {CarriedRows}
                query.restart()
                assert query.rows() == received
                assert kinds(query) == {SlotRange}
                query.restart(mode="walsender", spool=tmp_path / "spool")
                assert query.rows() == received
                query.restart(mode="auto", spool=None)
                query.commit()
                seen += received
        query.restart(reopen=False)
        assert len(seen) > 1600
    finally:
        db18.execute("ALTER SYSTEM RESET logical_decoding_work_mem", "SELECT pg_reload_conf()")


@needs_admission_control
def test_a_transaction_that_is_too_large_for_tasks(db: Database, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver lets go of the slot before it has all of it, and takes it again afterwards."""
    for module in (receiving, stored_rows):
        monkeypatch.setattr(module, "MOST_IN_MEMORY", 1 << 20)
    db.execute("INSERT INTO t VALUES (0)")
    assert new_values(query.plan()) == ["0"]
    assert kinds(query) == {CarriedRows}
    query.commit()
    db.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 100000) AS i")
    while not (rows := query.plan()):
        # While the server decodes, it reports that it has come further.
        query.commit()
    assert len(rows) == 100_000
    assert kinds(query) == {SlotRange}
    query.commit()
    db.execute("INSERT INTO t VALUES (-1)")
    assert new_values(query.plan()) == ["-1"]
    assert kinds(query) == {CarriedRows}


@needs_admission_control
@pytest.mark.parametrize("ends", [False, True])
def test_a_value_that_is_too_large_for_a_task(
    db: Database, query: Query, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr(stored_rows, "LARGEST_TASK", 1 << 10)
    value = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) AS i)"
    db.execute("INSERT INTO t VALUES (0, 'small')", f"INSERT INTO t VALUES (1, {value})")
    if ends:
        query.reader.prepareForTriggerAvailableNow()
    rows: list[str] = []
    while len(rows) < 2:
        rows += new_values(query.plan())
        query.commit()
    assert rows == ["0", "1"]


@needs_admission_control
def test_the_time_of_a_batch_is_flat_while_a_transaction_stays_open(db: Database, query: Query) -> None:
    """A peek of one row takes longer with each MiB of WAL behind the open transaction; a walsender decodes no twice."""
    other = db.writer()
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (-1)")

    def seconds_of_a_batch() -> float:
        took = []
        for _ in range(5):
            db.execute("INSERT INTO t VALUES ((SELECT max(id) + 1 FROM t))")
            began = time.monotonic()
            assert len(query.plan()) == 1
            query.commit()
            took.append(time.monotonic() - began)
        return sorted(took)[2]

    db.execute("INSERT INTO t VALUES (0)")
    query.plan()
    query.commit()
    idle_seconds = seconds_of_a_batch()
    # WAL of a table that is not published costs the same to decode.
    db.execute(
        "CREATE TABLE u (v text)", "ALTER PUBLICATION p RENAME TO all_tables", "CREATE PUBLICATION p FOR TABLE t"
    )
    query.restart()
    db.execute("INSERT INTO u SELECT repeat('x', 100) FROM generate_series(1, 300000) AS i")
    db.execute("INSERT INTO t VALUES ((SELECT max(id) + 1 FROM t))")
    query.plan(60)
    query.commit()
    retained = query_slot(db.connection, "s")
    assert retained.retained_bytes > 30 << 20
    assert seconds_of_a_batch() < idle_seconds + 0.1
    assert kinds(query) <= {CarriedRows}
    other.close()


@needs_admission_control
def test_peek_behind_an_open_transaction_warns(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peek_stream, "REPEATED_WAL_WARNING", 1 << 20)
    other = db.writer()
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (-1)")
    query = Query(db, tmp_path, mode="peek")
    for rows in (20_000, 1, 1):
        db.execute(
            f"INSERT INTO t SELECT (SELECT coalesce(max(id), 0) FROM t) + i FROM generate_series(1, {rows}) AS i"
        )
        query.plan()
        query.commit()
    query.restart(reopen=False)
    other.close()
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert re.fullmatch(r"slot s: the server decodes [1-9] MiB of WAL before each batch again, .*", warning)


@needs_admission_control
def test_a_server_without_a_walsender_to_spare(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = Query(db, tmp_path, mode="auto")
    refused = other.options.connection.connect

    def connect(self: Any, *, replication: bool = False, **options: Any) -> Any:
        import psycopg

        if replication:
            raise psycopg.OperationalError("number of requested standby connections exceeds max_wal_senders")
        return refused(**options)

    monkeypatch.setattr(type(other.options.connection), "connect", connect)
    for number in (1, 2):
        db.execute(f"INSERT INTO t VALUES ({number})")
        assert new_values(other.plan()) == [str(number)]
        assert kinds(other) == {SlotRange}
        other.commit()
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning.startswith("Slot s: the server refused a walsender, so peek reads the slot: number of requested")
    other.restart(reopen=False)


@needs_admission_control
def test_with_two_phase_a_walsender_alone_reads(db: Database, tmp_path: Path) -> None:
    db.rows("SELECT pg_drop_replication_slot('s'), pg_create_logical_replication_slot('s', 'pgoutput', false, true)")
    query = Query(db, tmp_path, mode="auto")
    db.execute("BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION 'g'", "COMMIT PREPARED 'g'")
    (row,) = query.plan()
    assert row["gid"] == "g"
    query.restart()
    assert query.rows() == [row]
    query.restart(reopen=False)


@pytest.mark.thorough
@pytest.mark.postgres
@needs_admission_control
def test_a_slot_of_a_standby(tmp_path: Path) -> None:
    """A standby serves both readers."""
    with LocalServer(installation(18), fsync="off") as server:
        with connect_writer(server.dsn) as primary:
            primary.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            primary.execute("CREATE PUBLICATION p FOR ALL TABLES")
        with start_standby_of(server, tmp_path / "backup") as standby, connect_writer(server.dsn) as primary:
            with connect_writer(standby.dsn) as connection, ThreadPoolExecutor() as threads:
                future = threads.submit(create_slot, connection, "s")

                def is_made() -> bool:
                    # The standby waits for a list of the running transactions.
                    primary.execute("SELECT pg_log_standby_snapshot()")
                    return future.done()

                eventually(is_made)
                future.result()
            query = Query(cast(Database, standby), tmp_path, mode="auto")
            primary.execute("INSERT INTO t VALUES (0)")
            assert new_values(query.plan()) == ["0"]
            assert kinds(query) == {CarriedRows}
            query.commit()
            query.restart()
            primary.execute("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i")
            eventually(lambda: standby_has(standby, 20_001))
            assert len(query.plan()) == 20_000
            assert kinds(query) == {SlotRange}
            query.restart(reopen=False)


def standby_has(standby: LocalServer, rows: int) -> bool:
    with connect_writer(standby.dsn) as connection:
        return connection.execute("SELECT count(*) FROM t").fetchone() == (rows,)


def test_rows_in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks hold the rows of the batch in order, and none is larger than Spark likes, even without compression."""
    import os

    monkeypatch.setattr(stored_rows, "TASK", 10_000)
    schema = pa.schema([("v", pa.binary())])
    rows = RowsInMemory()
    values = [os.urandom(300) for _ in range(1000)]
    for first in range(0, 1000, 250):
        batch = pa.record_batch({"v": values[first : first + 250]}, schema)
        rows.write(batch, pa.array(range(first, first + 250)).to_numpy())
    parts: Any = rows.partitions(Lsn(100), Lsn(900))
    assert parts is not None
    assert max(len(part.data) for part in parts) <= 10_000
    read_values = [value for part in parts for batch in part.read() for value in batch.column(0).to_pylist()]
    assert read_values == values[100:900]
    size = rows.size
    rows.remove_before(Lsn(250))
    assert rows.size == size * 3 // 4
    monkeypatch.setattr(stored_rows, "MOST_IN_MEMORY", 100_000)
    assert rows.partitions(Lsn(250), Lsn(1000)) is None
    rows.close()
    assert rows.partitions(Lsn(0), Lsn(1000)) == []
    assert arrow_schema(feed_schema()).names
