"""Names that pass from one table to another while `replicate` is down: what is pending is the earlier table's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.companions import companion_differences
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database, create_database


def _hold(db: Database, folder: Path) -> None:
    """Have the changes of a table wait behind a value that it does not take."""
    for name in ("v", "w"):
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, at date)", f"INSERT INTO {name} VALUES (1, '2020-01-01')")
    db.execute("CREATE PUBLICATION p FOR ALL TABLES")
    replicate_once(db, folder, publication="p")
    db.execute("INSERT INTO w VALUES (2, 'infinity')", "INSERT INTO w VALUES (3, '2020-01-01')")
    with pytest.raises(TablesStoppedError, match="COLUMN_VALUE"):
        replicate_once(db, folder, publication="p")


def _stop(db: Database, folder: Path) -> None:
    """Have a table stop, as PostgreSQL 16 does not send a column of its key."""
    db.execute(
        "CREATE TABLE v (id int PRIMARY KEY)",
        "CREATE TABLE w (id int, g int GENERATED ALWAYS AS (id / 10) STORED, PRIMARY KEY (id, g))",
        "INSERT INTO w VALUES (1)",
        "CREATE PUBLICATION p FOR ALL TABLES",
    )
    replicate_once(db, folder, publication="p")
    db.execute("DELETE FROM w")
    with pytest.raises(TablesStoppedError, match="KEY_NOT_SENT"):
        replicate_once(db, folder, publication="p")


def test_waiting_changes_do_not_pass_to_another_table_of_the_name(db18: Database, tmp_path: Path) -> None:
    _hold(db18, tmp_path)
    db18.execute("DROP TABLE w", "ALTER TABLE v RENAME TO w")
    for number in (4, 5):
        replicate_once(db18, tmp_path, publication="p")
        db18.execute(f"INSERT INTO w VALUES ({number}, '2020-01-01')")
    replicate_once(db18, tmp_path, publication="p")
    assert companion_differences(db18, tmp_path, ["public.w"], TableSettings()) == {}


def test_waiting_changes_of_a_dropped_table_are_removed(db18: Database, tmp_path: Path) -> None:
    _hold(db18, tmp_path)
    folders = [tmp_path / "_logicalrep" / name / "public/w" for name in ("buffered",)]
    assert all(any(folder.iterdir()) for folder in folders)
    db18.execute("DROP TABLE w")
    replicate_once(db18, tmp_path, publication="p")
    assert [path for folder in folders if folder.exists() for path in folder.iterdir()] == []


@pytest.mark.parametrize("end", [_hold, _stop])
@pytest.mark.postgres
def test_a_new_table_is_loaded_where_another_one_of_its_name_had_an_error(
    tmp_path: Path, end: Callable[[Database, Path], None]
) -> None:
    with create_database(16) as db:
        end(db, tmp_path)
        db.execute("DROP TABLE w", "CREATE TABLE w (id int PRIMARY KEY)", "INSERT INTO w VALUES (4)")
        replicate_once(db, tmp_path, publication="p")
        states = {str(name): table.state for name, table in State.read(Storage(str(tmp_path))).tables.items()}
        assert states == {"public.v": "following", "public.w": "following"}
        assert companion_differences(db, tmp_path, ["public.v", "public.w"], TableSettings()) == {}
