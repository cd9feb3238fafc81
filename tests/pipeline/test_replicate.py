"""`logicalrep replicate` on a real server: what is in the tables afterwards is what the server has."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest

import logicalrep
from conformance import rows
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.receiving import ChangeReceiver, Changes
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.sessions import walsender
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.usage import retry_until_free
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import read_properties, read_table
from tests.pipeline.replicating import FORMAT, TABLES, replicate_meanwhile, replicate_once
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, MODES, WriteMode
from tests.postgres.servers import Database, create_database
from tests.spark import workload
from tests.waiting import eventually


def test_a_call_returns_a_summary(shop: Database, tmp_path: Path) -> None:
    first = logicalrep.replicate(shop.dsn, str(tmp_path), once=True, format=FORMAT)
    assert (first.tables, first.stopped, first.loaded_rows, first.changes) == (3, (), 6010, 0)
    shop.execute("UPDATE orders SET note = 'new' WHERE id <= 20", "DELETE FROM customer WHERE id = 1")
    second = logicalrep.replicate(shop.dsn, str(tmp_path), once=True, format=FORMAT)
    assert (second.tables, second.loaded_rows, second.changes) == (3, 0, 21)
    assert second.lsn > first.lsn


def test_once_loads_all_tables_and_a_second_run_applies_later_changes(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
    assert not (tmp_path / "public" / "bare").exists()
    shop.execute(
        "UPDATE customer SET city = 'Erlangen' WHERE id % 3 = 0",
        "DELETE FROM orders WHERE id % 7 = 0",
        "UPDATE orders SET id = id + 100000 WHERE id % 11 = 0",
        "INSERT INTO audit VALUES (NULL, NULL), ('2021-01-01', 'new'), ('2021-01-01', 'new')",
        "DELETE FROM audit WHERE ctid IN (SELECT ctid FROM audit WHERE what = 'same' LIMIT 4)",
    )
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
    shop.execute("TRUNCATE customer, audit", "INSERT INTO customer VALUES (1, 'again', NULL)")
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_batch_before_the_slot_is_read_is_none(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of the slot may begin later than the first batch."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    take, early = ChangeReceiver.take, [Changes((), Lsn(0))] * 3
    monkeypatch.setattr(ChangeReceiver, "take", lambda receiver: early.pop() if early else take(receiver))
    replicate_once(db18, tmp_path)
    assert not early
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_no_change_is_passed_before_the_tables_are_known(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look may wait for a session that alters a table."""
    replicate_once(shop, tmp_path)
    shop.execute("DELETE FROM orders WHERE id % 7 = 0")
    look, failing = Catalog.query_tables, [True, True]
    monkeypatch.setattr(Catalog, "query_tables", lambda catalog: None if failing and failing.pop() else look(catalog))
    replicate_once(shop, tmp_path)
    assert not failing
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


@pytest.mark.parametrize("mode", MODES)
def test_a_workload_of_every_kind_of_change_is_followed(db: Database, tmp_path: Path, mode: WriteMode) -> None:
    limits = MARKS_IN_SMALL_FILES
    workload.prepare(db)
    tables = ["public.plain", "public.whole", "public.by_index", "public.toasted", 'public.Odd "Näme']
    db.execute("DROP PUBLICATION p", "ALTER TABLE bare REPLICA IDENTITY NOTHING")
    with closing(db.writer()) as writer, replicate_meanwhile(db, tmp_path, limits=limits, write_mode=mode) as caught_up:
        for seed in range(3):
            rows.run(writer, seed)
        caught_up()
        assert find_differences(db.dsn, str(tmp_path), tables) == {}
        time.sleep(0.1)
        rows.run(writer, 3)
        caught_up()
    assert find_differences(db.dsn, str(tmp_path), tables) == {}
    replicate_once(db, tmp_path, limits=limits, write_mode=mode)
    assert find_differences(db.dsn, str(tmp_path), tables) == {}


def test_a_second_process_exits_with_slot_in_use_and_harms_nothing(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits for half a minute otherwise, as the first one may be ending.
    monkeypatch.setattr(
        walsender,
        "retry_until_free",
        lambda start, observer, slot, patience: retry_until_free(start, observer, slot, patience=2),
    )
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        caught_up()
        with pytest.raises(SlotError, match=r"\[SLOT_IN_USE\] replication slot '\w+' is in use by process \d+"):
            replicate_once(shop, tmp_path)
        shop.execute("UPDATE customer SET city = 'Bamberg' WHERE id < 100")
        caught_up()
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_new_and_altered_tables_are_loaded_without_a_request(shop: Database, tmp_path: Path) -> None:
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        caught_up()
        shop.execute(
            "CREATE TABLE later (id int PRIMARY KEY, v text)",
            "INSERT INTO later VALUES (1, 'one')",
            "ALTER TABLE customer ADD COLUMN mark text DEFAULT 'none'",
            "UPDATE customer SET mark = 'some' WHERE id = 5",
        )
        eventually(lambda: (tmp_path / "public" / "later" / "_delta_log").exists())
        shop.execute("INSERT INTO later VALUES (2, 'two')")
        caught_up()
    assert find_differences(shop.dsn, str(tmp_path), [*TABLES, "public.later"]) == {}


def test_a_stopped_table_has_the_reason_in_its_properties(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, at date)", "INSERT INTO t VALUES (1, now())")
    replicate_once(db18, tmp_path)
    db18.execute("INSERT INTO t VALUES (2, 'infinity')")
    for _ in range(2):
        with pytest.raises(TablesStoppedError, match=r"run logicalrep resync public\.t "):
            replicate_once(db18, tmp_path)
        properties = read_properties(str(tmp_path / "public/t"))
        assert re.match(
            r"since \w+/\w+: .*infinity.*run logicalrep resync public\.t ", properties["logicalrep.stopped"]
        )
    db18.execute("DELETE FROM t WHERE id = 2")
    resync(ConnectionSettings(db18.dsn), Storage(str(tmp_path)), [TableName("public", "t")])
    replicate_once(db18, tmp_path)
    assert "logicalrep.stopped" not in read_properties(str(tmp_path / "public/t"))
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_a_table_that_was_out_of_the_publication_at_the_start_is_reloaded(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE SCHEMA s", "CREATE TABLE s.t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLES IN SCHEMA s"
    )
    replicate_once(db18, tmp_path, publication="p")
    db18.execute("ALTER TABLE s.t SET SCHEMA public", "INSERT INTO t VALUES (1)")
    with replicate_meanwhile(db18, tmp_path, publication="p") as caught_up:
        caught_up()
        db18.execute("ALTER TABLE t SET SCHEMA s")
        eventually(lambda: find_differences(db18.dsn, str(tmp_path), ["s.t"]) == {})


def test_a_table_that_leaves_and_rejoins_the_publication_is_reloaded(db18: Database, tmp_path: Path) -> None:
    """The entry of FOR ALL TABLES is the same; a table is none of them while it is unlogged."""
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE PUBLICATION p FOR ALL TABLES"
    )
    replicate_once(db18, tmp_path, publication="p")
    db18.execute("ALTER TABLE t SET UNLOGGED")
    replicate_once(db18, tmp_path, publication="p")
    # A file number of before tells nothing of the rows that were not sent.
    db18.execute("INSERT INTO t VALUES (2)", "ALTER TABLE t SET LOGGED")
    replicate_once(db18, tmp_path, publication="p")
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_a_row_that_an_update_brings_into_a_row_filter_has_its_large_value(db18: Database, tmp_path: Path) -> None:
    """The server makes an insert of the update, without the value: it did not change, and was never sent."""
    db18.execute(
        "CREATE TABLE t (id int, grade int, big text, PRIMARY KEY (id, grade))",
        "ALTER TABLE t ALTER COLUMN big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, i, repeat('x', 5000) || i FROM generate_series(1, 9) AS i",
        "CREATE PUBLICATION p FOR TABLE t WHERE (grade > 5)",
    )
    wanted = db18.rows("SELECT id, big FROM t")
    replicate_once(db18, tmp_path, publication="p", table_settings=TableSettings(append=True))
    db18.execute("UPDATE t SET grade = grade + 10 WHERE id < 5")
    replicate_once(db18, tmp_path, publication="p", table_settings=TableSettings(append=True))
    rows = read_table(str(tmp_path / "public/t")).sort_by("id")
    assert [(row["id"], row["big"]) for row in rows.to_pylist()] == [row for row in wanted if row[0] != 5]
    changes = read_table(str(tmp_path / "public/t~changes")).to_pylist()
    assert {(row["_change_type"], row["big"], *row["_unchanged"]) for row in changes} == {("insert", None, "big")}


@pytest.mark.postgres
def test_updates_that_come_without_a_column_of_the_key_stop_their_table(tmp_path: Path) -> None:
    """PostgreSQL 16 sends no generated columns, and lets a user publish such a table."""
    with create_database(16) as db:
        db.execute(
            "CREATE TABLE t (a int, v int, g int GENERATED ALWAYS AS (a / 10) STORED, PRIMARY KEY (a, g))",
            "CREATE TABLE other (id int PRIMARY KEY)",
            "INSERT INTO t SELECT i, i FROM generate_series(1, 20) AS i",
            "CREATE PUBLICATION p FOR ALL TABLES",
        )
        replicate_once(db, tmp_path, publication="p")
        db.execute("INSERT INTO t VALUES (21, 21)", "INSERT INTO other VALUES (1)")
        replicate_once(db, tmp_path, publication="p")
        db.execute("UPDATE t SET v = 0 WHERE a = 1", "INSERT INTO other VALUES (2)")
        with pytest.raises(TablesStoppedError, match=r"run ALTER TABLE public\.t REPLICA IDENTITY FULL"):
            replicate_once(db, tmp_path, publication="p")
        assert find_differences(db.dsn, str(tmp_path), ["public.other"]) == {}
        db.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        resync(ConnectionSettings(db.dsn), Storage(str(tmp_path)), [TableName("public", "t")])
        replicate_once(db, tmp_path, publication="p")
        db.execute("UPDATE t SET v = 0 WHERE a = 2", "DELETE FROM t WHERE a = 3")
        replicate_once(db, tmp_path, publication="p")
        stored = sorted((row["a"], row["v"]) for row in read_table(str(tmp_path / "public/t")).to_pylist())
        assert stored == sorted(db.rows("SELECT a, v FROM t"))
