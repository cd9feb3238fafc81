"""Marked rows, history and changes beside the tables of a real server, through `replicate --once`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.operate.resync import read_known_settings, resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables import writer as table_writer
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, WriteMode
from tests.postgres.servers import Database

ALL = TableSettings(deletes="soft", history=True, append=True)
BIG = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 500) AS i)"


def rows(storage: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    stored = read_table(str(storage / "public" / table)).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in stored), key=repr)


@pytest.mark.parametrize(
    ("format_", "mode"),
    [
        ("delta", "copy-on-write"),
        ("iceberg", "merge-on-read"),
        pytest.param("delta", "merge-on-read", marks=pytest.mark.thorough),
        pytest.param("iceberg", "copy-on-write", marks=pytest.mark.thorough),
    ],
)
def test_all_three_through_changes_a_kill_and_a_resync(
    db18: Database, tmp_path: Path, mode: WriteMode, format_: FormatName, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = MARKS_IN_SMALL_FILES
    wanted = replace(ALL, write_mode=mode, format=format_)
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO t SELECT i, 'first', {BIG} FROM generate_series(1, 4) AS i",
        "CREATE TABLE reserved (id int PRIMARY KEY, _is_deleted text)",
    )
    tables = {"tables": (TableName("public", "t"),), "table_settings": wanted, "format": format_}
    replicate_once(db18, tmp_path, limits=limits, **tables)
    other = "delta" if format_ == "iceberg" else "iceberg"
    with pytest.raises(StateError, match=f"in the format {format_}, not {other}"):
        replicate_once(db18, tmp_path, limits=limits, **{**tables, "format": other})
    db18.execute(
        "UPDATE t SET v = 'second' WHERE id = 1",
        "UPDATE t SET v = 'third' WHERE id = 1",
        "DELETE FROM t WHERE id IN (2, 3)",
        "INSERT INTO t VALUES (3, 'again', 'small')",
    )
    # Rows are compared in several parts after a load.
    limits = replace(limits, matched_bytes=1000)
    with monkeypatch.context() as killed:
        # Both companion tables have the batch, the table itself has not.
        killed.setattr(table_writer, "apply", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            replicate_once(db18, tmp_path, limits=limits, **tables)
    assert rows(tmp_path, "t", "id", "_is_deleted") == [(i, False) for i in (1, 2, 3, 4)]
    replicate_once(db18, tmp_path, limits=limits, **tables)
    assert rows(tmp_path, "t", "id", "v", "_is_deleted") == [
        (1, "third", False),
        (2, "first", True),
        (3, "again", False),
        (4, "first", False),
    ]
    assert [(v, len(big) > 9000) for v, big in rows(tmp_path, "t~history", "v", "big")] == [
        ("again", False),
        *[("first", True)] * 4,
        ("second", True),
        ("third", True),
    ]
    changes = [("delete", 2), ("delete", 3), ("insert", 3), ("update_postimage", 1), ("update_postimage", 1)]
    assert rows(tmp_path, "t~changes", "_change_type", "id") == changes

    # Nothing of this is sent: a load finds out.
    db18.execute(
        "SET session_replication_role = replica",
        "ALTER PUBLICATION " + publication(db18) + " DROP TABLE t",
        "DELETE FROM t WHERE id = 4",
        "UPDATE t SET v = 'unseen' WHERE id = 3",
        "ALTER PUBLICATION " + publication(db18) + " ADD TABLE t",
    )
    replicate_once(db18, tmp_path, limits=limits, **tables)
    expected = [(1, "third", False), (2, "first", True), (3, "unseen", False), (4, "first", True)]
    assert rows(tmp_path, "t", "id", "v", "_is_deleted") == expected
    assert rows(tmp_path, "t~history", "id", "v", "_is_current") == [
        (1, "first", False),
        (1, "second", False),
        (1, "third", True),
        (2, "first", False),
        (3, "again", False),
        (3, "first", False),
        (3, "unseen", True),
        (4, "first", False),
    ]
    storage, connection = Storage(str(tmp_path), limits=limits), ConnectionSettings(db18.dsn)
    assert [(str(verdict.table), verdict.result) for verdict in verify(connection, storage)] == [("public.t", "equal")]
    assert resync(connection, storage, []) is False
    assert read_known_settings(storage).of(TableName("public", "t")) == wanted
    versions = rows(tmp_path, "t~history", "id", "v", "_valid_from_lsn", "_valid_to_lsn")
    db18.execute("TRUNCATE t", "INSERT INTO t VALUES (1, 'new', NULL)")
    replicate_once(db18, tmp_path, limits=limits, **tables)
    assert [row for row in rows(tmp_path, "t", "id", "v", "_is_deleted") if not row[2]] == [(1, "new", False)]
    after = rows(tmp_path, "t~history", "id", "v", "_valid_from_lsn", "_valid_to_lsn")
    assert len(after) == len(versions) + 1
    assert next(row for row in after if row[3] is None)[:2] == (1, "new")
    drop(connection, storage, deletes_tables=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def publication(db: Database) -> str:
    return str(db.value("SELECT pubname FROM pg_publication"))


def test_a_reserved_name_stops_its_table_alone(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE reserved (id int PRIMARY KEY, _is_deleted text)")
    with pytest.raises(TablesStoppedError, match=r"public\.reserved.*COLUMN_RESERVED"):
        replicate_once(db18, tmp_path, table_settings=TableSettings(deletes="soft"))
    assert (tmp_path / "public" / "t").exists()
