"""Other programs at work on replicated tables: their upkeep is followed, changes of theirs are loaded away."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import LogDamagedError
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import LoadReasons, stored_load
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

HISTORY = TableSettings(history=True, append=True)
FOLDERS = ["public/t", "public/t~history", "public/t~changes"]


def upkeep(storage: Path) -> None:
    """Do what another engine does for a table's upkeep, with all that it may delete."""
    for folder in FOLDERS:
        table = DeltaTable(str(storage / folder))
        table.optimize.compact()
        table.optimize.z_order(["id"])
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        table.create_checkpoint()
        table.cleanup_metadata()


def prepare(db: Database) -> None:
    db.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, at timestamptz, tags text[])",
        "INSERT INTO t SELECT i, repeat('x', i), now(), ARRAY['a', NULL] FROM generate_series(1, 100) AS i",
        "CREATE TABLE other (id int PRIMARY KEY)",
    )


def test_upkeep_of_another_program_is_followed_and_its_changes_are_loaded_away(db18: Database, tmp_path: Path) -> None:
    prepare(db18)
    loads = LoadReasons()
    with replicate_meanwhile(db18, tmp_path, loads, table_settings=HISTORY) as caught_up:
        caught_up()
        for number in range(3):
            db18.execute(
                f"UPDATE t SET v = '{number}' WHERE id % 3 = {number}", f"DELETE FROM t WHERE id = {number + 7}"
            )
            caught_up()
        first = stored_load(tmp_path)
        upkeep(tmp_path)
        db18.execute("UPDATE t SET v = 'after' WHERE id % 2 = 0", "INSERT INTO t VALUES (1000, 'new', now(), '{}')")
        caught_up()
        assert stored_load(tmp_path) == first
        assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
        history = DeltaTable(str(tmp_path / FOLDERS[1])).to_pyarrow_table()
        assert sum(history["_is_current"].to_pylist()) == db18.value("SELECT count(*) FROM t")
        DeltaTable(str(tmp_path / "public/t")).delete("id = 50")
        db18.execute("UPDATE t SET v = 'last' WHERE id = 51")
        eventually(lambda: stored_load(tmp_path) != first)
        caught_up()
    assert [reason.partition(" of ")[0] for reason in loads.reasons if "new table" not in reason] == [
        f"{tmp_path}/public/t: DELETE"
    ]
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_what_another_program_did_while_nobody_replicated_is_found(db18: Database, tmp_path: Path) -> None:
    prepare(db18)
    replicate_once(db18, tmp_path, table_settings=HISTORY)
    first = stored_load(tmp_path)
    for _ in range(2):
        upkeep(tmp_path)
        replicate_once(db18, tmp_path, table_settings=HISTORY)
        assert stored_load(tmp_path) == first
    DeltaTable(str(tmp_path / "public/t")).delete("id = 50")
    upkeep(tmp_path)
    db18.execute("UPDATE t SET v = 'last' WHERE id = 51")
    replicate_once(db18, tmp_path, table_settings=HISTORY)
    assert stored_load(tmp_path) != first
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
    # Nothing could load a history again.
    DeltaTable(str(tmp_path / FOLDERS[1])).delete("id = 50")
    with pytest.raises(TablesStoppedError, match=r"public\.t: \[HISTORY_DAMAGED\].*DELETE of delta-rs"):
        replicate_once(db18, tmp_path, table_settings=HISTORY)


def test_a_damaged_log_stops_its_table_until_the_folder_is_removed(db18: Database, tmp_path: Path) -> None:
    prepare(db18)
    replicate_once(db18, tmp_path)
    log = tmp_path / "public/t/_delta_log"
    for path in log.glob("*.json"):
        path.write_bytes(b"{")
    with pytest.raises(LogDamagedError):
        DeltaLog.open(Storage(str(tmp_path)), "public/t")
    db18.execute("INSERT INTO other VALUES (1)", "UPDATE t SET v = 'later' WHERE id = 1")
    with pytest.raises(TablesStoppedError, match=r"public\.t: \[TABLE_LOG_DAMAGED\]"):
        replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.other"]) == {}
    shutil.rmtree(tmp_path / "public/t")
    replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
