"""Tables that were restored to an earlier state, alone or with others' commits since: they are loaded again."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import logicalrep
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep.reader import ReadError
from logicalrep.transactions.table_names import TableName
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import LoadReasons, stored_load
from tests.pipeline.replicating import replicate_once, settings
from tests.postgres.servers import Database

FORMATS = ["delta", "iceberg", pytest.param("catalog", marks=pytest.mark.thorough)]
HISTORY = {"history": True, "append": True}


@pytest.fixture(params=FORMATS)
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the options of a run in a format, for one also in a catalog."""
    if request.param == "catalog":
        return {"format": "iceberg", "catalog": f"sqlite:///{tmp_path}/catalog.db"}
    return {"format": request.param}


def reasons(db: Database, lake: Path, **options: Any) -> list[str]:
    """Replicate once, and return the reasons of loads."""
    loads = LoadReasons()
    replicate_with(settings(db, lake, once=True, **options), loads, engine=SequentialEngine())
    return loads.reasons


def prepare(db: Database, lake: Path, **options: Any) -> None:
    db.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'a' FROM generate_series(1, 50) i"
    )
    replicate_once(db, lake, **options)
    db.execute("UPDATE t SET v = 'b' WHERE id < 10")
    replicate_once(db, lake, **options)


class Copy:
    """A copy of a destination, to restore folders from."""

    def __init__(self, lake: Path) -> None:
        self._lake, self._copy = lake, lake.parent / "copy"
        shutil.copytree(lake, self._copy)
        self._catalog = lake.parent / "catalog.db"
        if self._catalog.exists():
            shutil.copy(self._catalog, self._copy / "catalog.db")

    def restore(self, folder: str) -> None:
        shutil.rmtree(self._lake / folder)
        shutil.copytree(self._copy / folder, self._lake / folder)
        if self._catalog.exists():
            # The metadata of every table of these tests is restored.
            with sqlite3.connect(self._copy / "catalog.db") as source, sqlite3.connect(self._catalog) as target:
                rows = source.execute("SELECT metadata_location, table_name FROM iceberg_tables").fetchall()
                names = {folder.removeprefix("public/").replace("~", "_")}
                target.executemany(
                    "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?",
                    [row for row in rows if row[1] in names],
                )


def test_a_folder_that_was_restored_is_reloaded(db18: Database, tmp_path: Path, options: dict[str, Any]) -> None:
    lake = tmp_path / "lake"
    prepare(db18, lake, **options)
    copy = Copy(lake)
    db18.execute("UPDATE t SET v = 'c' WHERE id < 20", "INSERT INTO t VALUES (100, 'd')")
    assert reasons(db18, lake, **options) == []
    catalog = {"catalog": options["catalog"]} if "catalog" in options else {}
    opened_later = logicalrep.read(lake, "t", **catalog)
    copy.restore("public/t")
    (reason,) = reasons(db18, lake, **options)
    # The load has the version that the table had before.
    assert opened_later.version == logicalrep.read(lake, "t", **catalog).version
    with pytest.raises(ReadError, match=r"\[VERSION_GONE\].* another commit has its number now"):
        opened_later.arrow()
    assert "before version" in reason
    assert "was restored to an earlier state" in reason
    assert find_differences(db18.dsn, str(lake), ["public.t"]) == {}
    assert reasons(db18, lake, **options) == []


@pytest.mark.parametrize("companion", ["history", "changes"])
def test_a_companion_table_that_was_restored_has_its_table_reloaded(
    db18: Database, tmp_path: Path, options: dict[str, Any], companion: str
) -> None:
    lake = tmp_path / "lake"
    prepare(db18, lake, **HISTORY, **options)
    copy = Copy(lake)
    db18.execute("UPDATE t SET v = 'c' WHERE id < 20")
    assert reasons(db18, lake, **HISTORY, **options) == []
    copy.restore(f"public/t~{companion}")
    (reason,) = reasons(db18, lake, **HISTORY, **options)
    assert f"public/t~{companion} is at version" in reason
    assert find_differences(db18.dsn, str(lake), ["public.t"]) == {}
    assert reasons(db18, lake, **HISTORY, **options) == []


@pytest.mark.parametrize("name", ["snap-*.avro", "*-m.avro"])
@pytest.mark.parametrize("folder", ["public/t", "public/t~changes"])
def test_an_iceberg_table_without_a_file_of_its_metadata_stops_until_it_is_removed(
    db18: Database, tmp_path: Path, options: dict[str, Any], folder: str, name: str
) -> None:
    if options["format"] == "delta":
        pytest.skip("delta-rs reads the log")
    lake = tmp_path / "lake"
    prepare(db18, lake, **HISTORY, **options)
    max((lake / folder / "metadata").glob(name), key=lambda path: path.stat().st_mtime_ns).unlink()
    db18.execute("UPDATE t SET v = 'c' WHERE id < 20")
    # A load would have to read the metadata too.
    with pytest.raises(TablesStoppedError, match=r"public\.t: \[TABLE_LOG_DAMAGED\].* does not exist; restore it, or"):
        reasons(db18, lake, **HISTORY, **options)
    shutil.rmtree(lake / folder)
    if "catalog" in options:
        with sqlite3.connect(tmp_path / "catalog.db") as catalog:
            catalog.execute("DELETE FROM iceberg_tables WHERE table_name = ?", (folder[7:].replace("~", "_"),))
    resync(db18.settings, Storage(str(lake)), [TableName("public", "t")])
    replicate_once(db18, lake, **HISTORY, **options)
    assert find_differences(db18.dsn, str(lake), ["public.t"]) == {}


def compact(folder: Path) -> None:
    DeltaTable(str(folder)).optimize.z_order(["id"])


def delete_rows(folder: Path) -> None:
    DeltaTable(str(folder)).delete("id = 30")


@pytest.mark.parametrize("commits", [[compact], [delete_rows, compact, compact]], ids=len)
def test_a_restore_is_detected_after_commits_of_other_programs(
    db18: Database, tmp_path: Path, commits: list[Callable[[Path], None]]
) -> None:
    """The version is what the checkpoint says, or later, and the commit of that version is another one."""
    lake = tmp_path / "lake"
    prepare(db18, lake, format="delta")
    copy = Copy(lake)
    db18.execute("UPDATE t SET v = 'c' WHERE id < 20")
    replicate_once(db18, lake, format="delta")
    copy.restore("public/t")
    for commit in commits:
        commit(lake / "public/t")
    (reason,) = reasons(db18, lake, format="delta")
    assert "is another commit than at the last checkpoint" in reason
    assert find_differences(db18.dsn, str(lake), ["public.t"]) == {}


def test_upkeep_of_others_and_a_kill_before_the_checkpoint_load_nothing(
    db18: Database, tmp_path: Path, options: dict[str, Any]
) -> None:
    lake = tmp_path / "lake"
    prepare(db18, lake, **HISTORY, **options)
    states = lake / "_logicalrep/states"
    contents = {path.name: path.read_bytes() for path in states.iterdir()}
    load = stored_load(lake)
    for folder in ("t", "t~history", "t~changes"):
        if options["format"] == "delta":
            compact(lake / "public" / folder)
    db18.execute("UPDATE t SET v = 'c' WHERE id < 20")
    # The slot's position is not asked for here: only the tables are ahead of the state.
    slot = db18.value("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    db18.execute(f"SELECT pg_copy_logical_replication_slot('{slot}', 'copied')")
    assert reasons(db18, lake, **HISTORY, **options) == []
    db18.execute(
        f"SELECT pg_drop_replication_slot('{slot}')",
        f"SELECT pg_copy_logical_replication_slot('copied', '{slot}')",
        "SELECT pg_drop_replication_slot('copied')",
    )
    shutil.rmtree(states)
    states.mkdir()
    for name, data in contents.items():
        (states / name).write_bytes(data)
    assert reasons(db18, lake, **HISTORY, **options) == []
    assert stored_load(lake) == load
    assert find_differences(db18.dsn, str(lake), ["public.t"]) == {}


def test_nothing_is_deleted_while_a_file_of_the_table_is_missing(
    db18: Database, tmp_path: Path, options: dict[str, Any]
) -> None:
    lake = tmp_path / "lake"
    prepare(db18, lake, **options)
    catalog = settings(db18, lake, **options).table_catalog
    table = table_format(Storage(str(lake)), options["format"], catalog).open("public/t")
    assert table is not None
    first = next(iter(table.files))
    (lake / "public/t" / first).rename(lake / "public/t" / "part-other.parquet")
    names = {path.name for path in (lake / "public/t").rglob("*")}
    with pytest.raises(DamagedError, match=f"{first} does not exist, but the table needs it: nothing is deleted"):
        table.maintain(0)
    assert {path.name for path in (lake / "public/t").rglob("*")} >= names
