"""A slot with a snapshot: the snapshot's rows and the slot's changes make the table, without loss or duplicates."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from logicalrep import Lsn, TimestampTz
from logicalrep.postgres import snapshots
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import Connection, newest_protocol
from logicalrep.postgres.slots.slot import find_slot, query_slot
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, create_slot_with_snapshot, hold, hold_tables
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database

TABLES = [TableName("public", "t")]


@pytest.fixture
def table(db: Database) -> Database:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE PUBLICATION p FOR ALL TABLES")
    return db


def test_with_what_follows_it_is_the_table(table: Database) -> None:
    stop = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with table.writer() as connection:
            while not stop.is_set():
                with connection.transaction():
                    for _ in range(chance.randint(1, 5)):
                        key = seed * 1000 + chance.randrange(50)
                        connection.execute(
                            "INSERT INTO t VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 1", (key,)
                        )
                        connection.execute("DELETE FROM t WHERE id = %s", (seed * 1000 + chance.randrange(50),))
                        time.sleep(chance.choice((0, 0.002)))

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    try:
        time.sleep(0.3)
        with create_slot_with_snapshot(table.settings, "s", TABLES) as snapshot:
            time.sleep(0.3)
            with table.writer() as connection:
                hold(connection, snapshot)
                rows: dict[str, str] = dict(connection.execute("SELECT id::text, v::text FROM t").fetchall())
                time.sleep(0.2)
                assert rows == dict(connection.execute("SELECT id::text, v::text FROM t").fetchall())
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert snapshot.lsn == query_slot(table.connection, "s").confirmed.lsn
    options = PluginOptions(publication_names=("p",), proto_version=newest_protocol(table.connection))
    changes: list[Any] = list(change_rows(peek(table.connection, "s", options), options.decoder()))
    assert len(changes) > 50
    for change in changes:
        assert int(Lsn(change["commit_lsn"])) >= snapshot.lsn
        if change["op"] == "insert":
            assert change["after"]["id"] not in rows
            rows[change["after"]["id"]] = change["after"]["v"]
        elif change["op"] == "update":
            assert int(rows[change["after"]["id"]]) + 1 == int(change["after"]["v"])
            rows[change["after"]["id"]] = change["after"]["v"]
        else:
            del rows[change["before"]["id"]]
    assert rows == dict(table.rows("SELECT id::text, v::text FROM t"))  # type: ignore[arg-type]


def test_tables_can_be_written_but_not_truncated_meanwhile(table: Database) -> None:
    table.execute("SET lock_timeout = '100ms'", "INSERT INTO t VALUES (1, 1)")
    with create_slot_with_snapshot(table.settings, "s", TABLES) as snapshot:
        table.execute("INSERT INTO t VALUES (2, 1)")
        for statement in ("TRUNCATE t", "ALTER TABLE t ADD w int", "VACUUM FULL t", "DROP TABLE t"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                table.execute(statement)
        with table.writer() as connection:
            hold(connection, snapshot)
            assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
    table.execute("TRUNCATE t")


def test_no_table_is_locked_while_another_one_is_waited_for(table: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that locks the same tables in the other order would end in a deadlock."""
    table.execute("CREATE TABLE u (id int PRIMARY KEY)")
    lock, tries = snapshots.try_to_lock, threading.Semaphore(0)

    def told(connection: Connection, statement: sql.Composed) -> bool:
        is_locked = lock(connection, statement)
        tries.release()
        return is_locked

    monkeypatch.setattr(snapshots, "try_to_lock", told)
    with table.writer() as reader, table.writer() as other, ThreadPoolExecutor(1) as pool:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with other.transaction():
            other.execute("LOCK TABLE u")
            held = pool.submit(hold_tables, reader, [*TABLES, TableName("public", "u")])
            tries.acquire()
            other.execute("LOCK TABLE t")
            tries.acquire()
            assert not held.done()
        held.result()
        locked = "SELECT relation::regclass::text FROM pg_locks WHERE pid = %s AND mode = 'AccessShareLock' ORDER BY 1"
        tables = [
            name for (name,) in table.connection.execute(locked, (reader.info.backend_pid,)) if name in ("t", "u")
        ]
        assert tables == ["t", "u"]


def test_tables_that_cannot_be_locked_for_long_are_reported(table: Database) -> None:
    with table.writer() as reader, table.writer() as other, other.transaction():
        other.execute("LOCK TABLE t")
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with pytest.raises(SnapshotError, match=r"^\[SNAPSHOT_BLOCKED\] another session waits to truncate or alter"):
            hold_tables(reader, TABLES, patience=0.2)


def test_an_exception_drops_the_slot(table: Database) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        create_slot_with_snapshot(table.settings, "s", TABLES),
    ):
        raise KeyboardInterrupt
    assert find_slot(table.connection, "s") is None


def test_a_slot_that_cannot_be_dropped_is_reported(table: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(*_: object) -> None:
        raise psycopg.OperationalError("the server is gone")

    monkeypatch.setattr(snapshots, "drop_slot", drop)
    with (
        pytest.raises(ValueError, match="mine") as caught,
        create_slot_with_snapshot(table.settings, "s", TABLES),
    ):
        raise ValueError("mine")
    assert caught.value.__notes__ == [
        "and replication slot 's', which retains WAL, was not dropped: the server is gone"
    ]


def test_a_slot_that_exists(table: Database) -> None:
    with create_slot_with_snapshot(table.settings, "s", TABLES):
        pass
    with (
        pytest.raises(
            SnapshotError,
            match=r"^\[SLOT_EXISTS\] replication slot 's' already exists.*pg_drop_replication_slot\('s'\)",
        ),
        create_slot_with_snapshot(table.settings, "s", TABLES),
    ):
        pass
    assert find_slot(table.connection, "s") is not None


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("statement", ["TRUNCATE t", "ALTER TABLE t ALTER v TYPE bigint", "VACUUM FULL t"])
def test_a_table_that_is_changed_before_it_is_locked(
    table: Database, statement: str, partitioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if partitioned:
        table.execute(
            "DROP TABLE t",
            "CREATE TABLE t (id int, v int) PARTITION BY RANGE (id)",
            "CREATE TABLE first PARTITION OF t FOR VALUES FROM (0) TO (10)",
        )
    table.execute("INSERT INTO t VALUES (1, 1)")

    def changed(connection: Connection, snapshot: Snapshot) -> None:
        table.execute(statement)
        hold(connection, snapshot)

    monkeypatch.setattr(snapshots, "hold", changed)
    name = r"public\.first" if partitioned else r"public\.t"
    with (
        pytest.raises(
            SnapshotError, match=rf"^\[SNAPSHOT_STALE\] {name} was truncated or rewritten when the snapshot was made"
        ),
        create_slot_with_snapshot(table.settings, "s", TABLES),
    ):
        pass
    assert find_slot(table.connection, "s") is None


@pytest.mark.parametrize(
    ("statements", "error"),
    [
        (
            ["ALTER TABLE t ADD w int DEFAULT 5"],
            r"^\[SNAPSHOT_STALE\] public\.t was altered when the snapshot was made",
        ),
        (["ALTER TABLE t RENAME v TO w"], r"^\[SNAPSHOT_STALE\] public\.t was altered when the snapshot was made"),
        (["ALTER TABLE t DROP v"], r"^\[SNAPSHOT_STALE\] public\.t was altered when the snapshot was made"),
        (
            ["DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, v int)"],
            r"^\[SNAPSHOT_STALE\] public\.t was altered when the snapshot was made",
        ),
        (["DROP TABLE t"], r"^\[SNAPSHOT_STALE\] a table of public\.t was dropped or renamed"),
    ],
)
def test_a_table_that_is_altered_before_it_is_locked(
    table: Database, statements: list[str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def altered(connection: Connection, snapshot: Snapshot) -> None:
        table.execute(*statements)
        hold(connection, snapshot)

    monkeypatch.setattr(snapshots, "hold", altered)
    with pytest.raises(SnapshotError, match=error), create_slot_with_snapshot(table.settings, "s", TABLES):
        pass
    assert find_slot(table.connection, "s") is None


def test_tables_that_are_held_no_more(table: Database) -> None:
    with (
        pytest.raises(SnapshotError, match="ended the session that locked the tables"),
        create_slot_with_snapshot(table.settings, "s", TABLES),
    ):
        table.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'AccessShareLock'"
        )
    assert find_slot(table.connection, "s") is None


def test_a_snapshot_that_is_gone(table: Database) -> None:
    with create_slot_with_snapshot(table.settings, "s", TABLES) as snapshot:
        pass
    for ended_snapshot in (snapshot, replace(snapshot, name="nonsense")):
        with (
            table.writer() as connection,
            pytest.raises(SnapshotError, match=rf"^\[SNAPSHOT_GONE\] the snapshot {ended_snapshot.name} has ended"),
        ):
            hold(connection, ended_snapshot)


def test_with_two_phase(table: Database) -> None:
    if table.major < 15:
        pytest.skip("two_phase needs PostgreSQL 15")
    with create_slot_with_snapshot(table.settings, "s", TABLES, two_phase=True):
        assert query_slot(table.connection, "s").two_phase


def test_with_failover(table: Database) -> None:
    if table.major < 17:
        pytest.skip("failover needs PostgreSQL 17")
    with create_slot_with_snapshot(table.settings, "s", TABLES, failover=True):
        slot = query_slot(table.connection, "s")
        assert slot.failover
        assert not slot.two_phase


def test_its_text() -> None:
    snapshot = Snapshot("00000003-0000001B-1", "s", Lsn("16/B374D848"), TimestampTz(12))
    assert str(snapshot) == "00000003-0000001B-1@s@16/B374D848@12"
    assert Snapshot.parse(str(snapshot)) == snapshot
    for text in ("", "a", "@16/0", "a@", "a@b", "a@s@1/2", "a@s@1/2@x", "a@@1/2@3", "a@s@1/2@3@4"):
        with pytest.raises(ValueError, match=r".+"):
            Snapshot.parse(text)
