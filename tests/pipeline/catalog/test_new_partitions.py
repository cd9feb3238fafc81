"""Partitions that come, go or are emptied between two refreshes: messages before their rows tell of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from logicalrep.observe.events import RowsCopied, RunEvent
from logicalrep.pipeline.catalog.catalog import Catalog, ServerTable
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.transactions.table_names import TableName
from tests.pipeline.companions import companion_differences
from tests.pipeline.observed_loads import LoadObserver, read_ids
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

EMPTIED = "a partition may have been truncated in the transaction that created it"
MADE = "CREATE TABLE day2 PARTITION OF root FOR VALUES FROM (2) TO (3)"
FILLED = "INSERT INTO root SELECT i, 2 FROM generate_series({}, {}) AS i"
EMPTIED_AT_ONCE = ("BEGIN", MADE, FILLED.format(1, 9), "TRUNCATE day2", FILLED.format(10, 12), "COMMIT")


@pytest.fixture
def db(db18: Database, tmp_path: Path) -> Database:
    """Return a database whose tables are at the destination."""
    db18.execute(
        "CREATE TABLE root (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "CREATE TABLE day1 PARTITION OF root FOR VALUES FROM (1) TO (2)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO root SELECT i, 1 FROM generate_series(1, 100) AS i",
        "CREATE PUBLICATION p FOR TABLE root, other WITH (publish_via_partition_root = true)",
    )
    replicate_once(db18, tmp_path, publication="p")
    return db18


def differences(db: Database, storage: Path) -> dict[str, str]:
    return companion_differences(db, storage, ["public.root"], TableSettings())


@pytest.mark.parametrize("end", ["COMMIT", "PREPARE"])
@pytest.mark.parametrize("is_emptied", [False, True])
def test_partitions_that_a_streamed_transaction_creates_are_followed(
    db: Database, tmp_path: Path, is_emptied: bool, end: str
) -> None:
    db.execute(f"ALTER DATABASE {db.name} SET logical_decoding_work_mem = '64kB'")
    streamed, observer = "SELECT coalesce(sum(stream_count), 0) FROM pg_stat_replication_slots", LoadObserver()
    with replicate_meanwhile(db, tmp_path, observer, publication="p") as caught_up:
        caught_up()
        streamed_before = int(str(db.value(streamed)))
        with db.writer() as other:
            for statement in ("BEGIN", "INSERT INTO root VALUES (0, 1)", MADE, FILLED.format(1, 5000)):
                other.execute(statement.encode())
            eventually(lambda: int(str(db.value(streamed))) > streamed_before)
            if is_emptied:
                other.execute("TRUNCATE day2")
            other.execute(FILLED.format(5001, 5009).encode())
            for statement in (
                ["COMMIT"] if end == "COMMIT" else ["PREPARE TRANSACTION 'made'", "COMMIT PREPARED 'made'"]
            ):
                other.execute(statement.encode())
        caught_up()
    assert [reason for reason, _ in observer.lines] == [EMPTIED] * is_emptied
    assert differences(db, tmp_path) == {}


@pytest.mark.parametrize("is_killed", [False, True], ids=["it runs", "killed"])
def test_a_dropped_partition_whose_rows_were_applied_reloads_the_table(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    """The look finds none of the partition, as it did at the one before; the rows came in between."""
    observer, query_tables, looks = LoadObserver(), Catalog.query_tables, Event()

    def query_later(self: Catalog) -> dict[TableName, ServerTable] | None:
        return query_tables(self) if looks.is_set() else None

    looks.set()
    monkeypatch.setattr(Catalog, "query_tables", query_later)
    with replicate_meanwhile(db, tmp_path, observer, publication="p") as caught_up:
        db.execute("INSERT INTO other VALUES (1)")
        caught_up()
        looks.clear()
        db.execute("BEGIN", MADE, FILLED.format(1, 9), "COMMIT")
        caught_up()
        if not is_killed:
            db.execute("DROP TABLE day2")
            looks.set()
            eventually(lambda: observer.lines != [])
    if is_killed:
        db.execute("DROP TABLE day2")
        looks.set()
    replicate_with(settings(db, tmp_path, once=True, publication="p"), observer, engine=SequentialEngine())
    assert [reason for reason, _ in observer.lines] == ["a partition was dropped or detached"]
    assert differences(db, tmp_path) == {}


def test_a_partition_that_is_created_and_emptied_during_a_load_reloads_the_table(db: Database, tmp_path: Path) -> None:
    class Copied(LoadObserver):
        def on_event(self, event: RunEvent) -> None:
            super().on_event(event)
            match event:
                case RowsCopied():
                    if not db.value("SELECT to_regclass('day2')"):
                        db.execute(*EMPTIED_AT_ONCE)

    observer = Copied()
    db.execute("TRUNCATE day1", "INSERT INTO root VALUES (1, 1)")
    for _ in range(2):
        replicate_with(settings(db, tmp_path, once=True, publication="p"), observer, engine=SequentialEngine())
    assert [reason for reason, _ in observer.lines] == [
        "a partition was truncated, or PostgreSQL rewrote its rows",
        EMPTIED,
    ]
    assert differences(db, tmp_path) == {}


def test_changes_wait_while_another_session_alters_the_table(db: Database, tmp_path: Path) -> None:
    observer = LoadObserver()
    with (
        replicate_meanwhile(db, tmp_path, observer, publication="p") as caught_up,
        db.writer() as writer,
        db.writer() as other,
        ThreadPoolExecutor() as threads,
    ):
        db.execute("INSERT INTO other VALUES (1)")
        caught_up()
        writer.execute("BEGIN; LOCK TABLE root IN ACCESS EXCLUSIVE MODE")
        # It is locked from the commit on.
        locked = threads.submit(other.execute, "BEGIN; LOCK TABLE root IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: db.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)
        for statement in (*EMPTIED_AT_ONCE[1:], "INSERT INTO other VALUES (2)"):
            writer.execute(statement.encode())
        locked.result()
        eventually(lambda: read_ids(tmp_path, "other") == [1, 2])
        assert observer.lines == []
        other.execute("COMMIT")
        caught_up()
    assert [reason for reason, _ in observer.lines] == [EMPTIED]
    assert differences(db, tmp_path) == {}


APART = {
    "a table": ["CREATE TABLE day2 (LIKE root INCLUDING ALL)"],
    "a table with partitions": [
        "CREATE TABLE day2 (LIKE root INCLUDING ALL) PARTITION BY RANGE (id)",
        "CREATE TABLE day2a PARTITION OF day2 FOR VALUES FROM (0) TO (100)",
    ],
}


@pytest.mark.parametrize("statements", APART.values(), ids=APART)
def test_a_table_that_is_a_partition_for_a_while_is_reloaded(
    db18: Database, tmp_path: Path, statements: list[str]
) -> None:
    db18.execute(
        "CREATE TABLE root (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        *statements,
        "INSERT INTO day2 VALUES (1, 2)",
        "CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root = true)",
    )
    replicate_once(db18, tmp_path, publication="p")
    attach, write = (
        "ALTER TABLE root ATTACH PARTITION day2 FOR VALUES FROM (2) TO (3)",
        "INSERT INTO root VALUES (2, 2)",
    )
    db18.execute(attach, write, "ALTER TABLE root DETACH PARTITION day2", "INSERT INTO day2 VALUES (3, 2)")
    observer = LoadObserver()
    replicate_with(settings(db18, tmp_path, once=True, publication="p"), observer, engine=SequentialEngine())
    assert sorted(name for _, names in observer.lines for name in names) == ["day2", "root"]
    assert companion_differences(db18, tmp_path, ["public.root", "public.day2"], TableSettings()) == {}
    # A table that stays a partition is no longer replicated, and so is not reloaded.
    observer.lines.clear()
    db18.execute(attach, "INSERT INTO root VALUES (4, 2)")
    replicate_with(settings(db18, tmp_path, once=True, publication="p"), observer, engine=SequentialEngine())
    assert [names for _, names in observer.lines] == [["root"]]
    assert companion_differences(db18, tmp_path, ["public.root"], TableSettings()) == {}


def test_changes_of_a_table_that_became_a_partition_wait_for_the_next_refresh(db18: Database, tmp_path: Path) -> None:
    observer = LoadObserver()
    db18.execute(
        "CREATE TABLE root (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "CREATE TABLE day2 (LIKE root INCLUDING ALL)",
        "CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root = true)",
    )
    replicate_once(db18, tmp_path, publication="p")
    attach = "ALTER TABLE root ATTACH PARTITION day2 FOR VALUES FROM (2) TO (3)"
    with replicate_meanwhile(db18, tmp_path, observer, publication="p") as caught_up:
        db18.execute("INSERT INTO day2 VALUES (1, 2)")
        caught_up()
        db18.execute(attach, "INSERT INTO root VALUES (2, 2)")
        caught_up()
        db18.execute("DELETE FROM root WHERE id = 1")
        caught_up()
    replicate_once(db18, tmp_path, publication="p")
    assert [names for _, names in observer.lines] == [["root"]]
    assert differences(db18, tmp_path) == {}


def test_rows_outside_the_filter_do_not_hide_truncated_rows(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE root (id int, day int) PARTITION BY RANGE (day)",
        "ALTER TABLE root REPLICA IDENTITY FULL",
        "CREATE PUBLICATION p FOR TABLE root WHERE (id < 100) WITH (publish_via_partition_root = true)",
    )
    replicate_once(db18, tmp_path, publication="p")
    db18.execute(
        "BEGIN", MADE, FILLED.format(1, 9), "TRUNCATE day2", FILLED.format(101, 109), FILLED.format(1, 1), "COMMIT"
    )
    observer = LoadObserver()
    replicate_with(settings(db18, tmp_path, once=True, publication="p"), observer, engine=SequentialEngine())
    assert [reason for reason, _ in observer.lines] == [EMPTIED]
    assert [row["id"] for row in read_table(str(tmp_path / "public/root")).to_pylist()] == [1]
