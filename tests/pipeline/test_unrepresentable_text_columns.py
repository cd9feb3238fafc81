"""Text columns: a column gets a text column with its first value that its type cannot hold, and keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pyarrow.compute as pc
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.reshaping import reshape
from logicalrep.pipeline.catalog.evolution import evolution_with_text_columns
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.errors import NeedsTexts
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables import writer as table_writer
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.kills import Killed
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_for_warnings, replicate_once
from tests.pipeline.typed_changes import APP, change_batches, new_table, table_spec
from tests.postgres.servers import Database

COLUMNS = {"id": (23, -1), "at": (1114, -1), "day": (1082, -1)}


def columns(folder: Path) -> list[str]:
    return [name for name in read_table(str(folder)).column_names if name[0] != "_"]


def stored_rows(folder: Path, *names: str) -> list[tuple[Any, ...]]:
    """Return columns of the rows that are there now."""
    table = read_table(str(folder))
    if "_is_deleted" in table.column_names:
        table = table.filter(pc.field("_is_deleted") == pc.scalar(False))
    elif "_is_current" in table.column_names:
        table = table.filter(pc.field("_is_current"))
    return sorted((tuple(row[name] for name in names) for row in table.to_pylist()), key=repr)


def results(db: Database, destination: Path) -> set[str]:
    return {verdict.result for verdict in verify(ConnectionSettings(db.dsn), Storage(str(destination)))}


def load_of(destination: Path, folder: str, format: FormatName = "delta") -> str:
    stored = table_format(Storage(str(destination)), format).open(folder)
    assert stored is not None
    return stored.load


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_the_text_column_appears_with_the_first_unrepresentable_value(
    db18: Database, tmp_path: Path, format: FormatName
) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, day date, n numeric(10,2))",
        "INSERT INTO t SELECT i, '2026-01-01', '2026-01-01', i FROM generate_series(1, 20) AS i",
    )
    options: dict[str, Any] = {"unrepresentable": "text", "deletes": "soft", "history": True, "format": format}
    folders = [tmp_path / "public/t", tmp_path / "public/t~history"]
    replicate_once(db18, tmp_path, **options)
    assert [columns(folder) for folder in folders] == [["id", "at", "day", "n"]] * 2
    load = load_of(tmp_path, "public/t", format)

    db18.execute(
        "UPDATE t SET at = 'infinity' WHERE id = 5",
        "DELETE FROM t WHERE id = 6",
        "UPDATE t SET day = '-infinity', at = 'infinity' WHERE id = 7",
        "UPDATE t SET at = '2026-01-02' WHERE id = 7",
    )
    warnings = replicate_for_warnings(db18, tmp_path, **options)
    assert "public.t: 2 values of day do not fit date: they are NULL, with their texts in day_text" in str(warnings)
    for folder in folders:
        assert sorted(columns(folder)) == ["at", "at_text", "day", "day_text", "id", "n"]
        rows = stored_rows(folder, "id", "at_text", "day_text")
        assert [row for row in rows if row[1:] != (None, None)] == [(5, "infinity", None), (7, None, "-infinity")]
        assert len(rows) == 19
    past = read_table(str(folders[1])).filter(~pc.field("_is_current")).to_pylist()
    assert sorted((row["id"], str(row["at_text"])) for row in past) == [
        (5, "None"), (6, "None"), (7, "None"), (7, "infinity")
    ]  # fmt: skip
    assert results(db18, tmp_path) == {"equal"}

    # A column of the user's own has its name, and another one is renamed; old rows have a new column's default.
    db18.execute(
        "ALTER TABLE t RENAME at TO moment",
        "ALTER TABLE t ADD day_text text, ADD until date DEFAULT 'infinity'",
        "UPDATE t SET day_text = 'own', n = 'NaN' WHERE id = 7",
    )
    replicate_once(db18, tmp_path, **options)
    names = ("id", "moment", "moment_text", "day", "day_text", "day_text_2", "n", "n_text", "until", "until_text")
    for folder in folders:
        assert sorted(columns(folder)) == sorted(names)
        rows = stored_rows(folder, *(name for name in names if "text" in name))
        assert (None, "own", "-infinity", "NaN", "infinity") in rows
        assert ("infinity", None, None, None, "infinity") in rows
    assert {row[0] for row in stored_rows(folders[0], "until_text")} == {"infinity"}
    assert results(db18, tmp_path) == {"equal"}
    assert load_of(tmp_path, "public/t", format) == load


@pytest.mark.parametrize("kill", [1, 2], ids=["the history has the column", "the table has it too"])
def test_a_kill_between_the_column_and_its_rows(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: int
) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, at timestamptz)", "INSERT INTO t VALUES (1, now()), (2, NULL)")
    options: dict[str, Any] = {"unrepresentable": "text", "history": True}
    replicate_once(db18, tmp_path, **options)
    load = load_of(tmp_path, "public/t")
    db18.execute("UPDATE t SET at = 'infinity' WHERE id = 1", "UPDATE t SET at = NULL WHERE id = 1")
    db18.execute("UPDATE t SET at = '-infinity' WHERE id = 2")
    reshaped = []

    def reshape_and_end(*arguments: Any) -> None:
        reshape(*arguments)
        reshaped.append(arguments)
        if len(reshaped) == kill:
            raise Killed

    monkeypatch.setattr(table_writer, "reshape", reshape_and_end)
    with pytest.raises(Killed):
        replicate_once(db18, tmp_path, **options)
    folders = [tmp_path / "public/t", tmp_path / "public/t~history"]
    assert ["at_text" in columns(folder) for folder in folders] == [kill == 2, True]
    replicate_once(db18, tmp_path, **options)
    assert stored_rows(folders[0], "id", "at", "at_text") == [(1, None, None), (2, None, "-infinity")]
    versions = read_table(str(folders[1])).to_pylist()
    assert sorted((row["id"], str(row["at_text"])) for row in versions if row["at"] is None) == [
        (1, "None"), (1, "infinity"), (2, "-infinity"), (2, "None")
    ]  # fmt: skip
    assert load_of(tmp_path, "public/t") == load


def texts_by_polars(folder: Path, condition: polars.Expr) -> Sequence[str]:
    rows = polars.scan_delta(str(folder)).filter(condition).select("id", "at_text", "day_text").collect()
    return [str(row) for row in rows.sort("id").rows()]


def test_loads_find_them_in_several_tasks_and_files(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(file_rows=64, task_bytes=1)
    db18.execute(
        "CREATE TABLE t (id int, at timestamptz, day date, part int, PRIMARY KEY (id, part)) PARTITION BY LIST (part)",
        *(f"CREATE TABLE t{number} PARTITION OF t FOR VALUES IN ({number})" for number in (1, 2)),
        "CREATE TABLE t3 (id int, at timestamptz, day date, part int, PRIMARY KEY (id, part))",
        "INSERT INTO t SELECT i, '2026-01-01', '2026-01-01', 1 + i % 2 FROM generate_series(1, 400) AS i",
        "INSERT INTO t VALUES (1001, 'infinity', NULL, 1), (1002, NULL, NULL, 2), (1003, 'infinity', NULL, 1)",
        "INSERT INTO t3 VALUES (2001, NULL, '-infinity', 3), (2002, now(), '2026-01-01', 3)",
    )
    folder = tmp_path / "public/t"
    replicate_once(db18, tmp_path, limits=limits, unrepresentable="text")
    assert columns(folder) == ["id", "at", "at_text", "day", "part"]
    load = load_of(tmp_path, "public/t")

    # The rows of a partition are put in among the others.
    db18.execute("ALTER TABLE t ATTACH PARTITION t3 FOR VALUES IN (3)")
    replicate_once(db18, tmp_path, limits=limits, unrepresentable="text")
    assert load_of(tmp_path, "public/t") == load
    assert columns(folder) == ["id", "at", "at_text", "day", "day_text", "part"]
    # By the statistics readers leave out files; those without the columns have NULL there.
    has_at, has_day = polars.col("at_text") == "infinity", polars.col("day_text") == "-infinity"
    assert texts_by_polars(folder, has_at) == ["(1001, 'infinity', None)", "(1003, 'infinity', None)"]
    assert texts_by_polars(folder, has_day) == ["(2001, None, '-infinity')"]
    assert polars.scan_delta(str(folder)).filter(polars.col("day_text").is_null()).collect().height == 404
    assert results(db18, tmp_path) == {"equal"}

    # They stay, also where a load finds no value for them.
    db18.execute("UPDATE t SET at = NULL, day = NULL WHERE id > 1000")
    resync(ConnectionSettings(db18.dsn), Storage(str(tmp_path)), [TableName("public", "t")])
    replicate_once(db18, tmp_path, limits=limits, unrepresentable="text")
    assert load_of(tmp_path, "public/t") != load
    assert columns(folder) == ["id", "at", "at_text", "day", "day_text", "part"]
    assert texts_by_polars(folder, has_at) == []
    assert results(db18, tmp_path) == {"equal"}


def test_verify_finds_a_text_that_the_destination_lacks(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, at timestamptz)", "INSERT INTO t VALUES (1, NULL), (2, now())")
    replicate_once(db18, tmp_path, unrepresentable="text")
    db18.execute("UPDATE t SET at = 'infinity' WHERE id = 1")
    identity = Identity.read(Storage(str(tmp_path)))
    assert identity is not None
    db18.value(f"SELECT pg_replication_slot_advance('{identity.slot}', pg_current_wal_insert_lsn())")
    (verdict,) = verify(ConnectionSettings(db18.dsn), Storage(str(tmp_path)), with_values=True)
    assert (verdict.result, verdict.differing) == ("different", 1)
    assert verdict.examples[0].server == {"id": "1", "at": None, "at_text": "infinity"}


def test_a_new_column_leaves_all_files_as_they_are(tmp_path: Path) -> None:
    table = replace(table_spec(COLUMNS, ("id",)), settings=TableSettings(unrepresentable="text"))
    log = new_table(Storage(str(tmp_path)), table)
    even = {"id": "1", "at": "2026-01-01 00:00:00", "day": "2026-01-01"}
    odd = {"id": "2", "at": "infinity", "day": "2026-01-01"}
    apply(log, change_batches([("insert", None, even)], 10, ("id",)), Position(APP, Lsn(10)), SequentialEngine())
    changes = change_batches([("insert", None, odd)], 20, ("id",))
    with pytest.raises(NeedsTexts, match="at"):
        apply(log, changes, Position(APP, Lsn(20)), SequentialEngine())
    (previous_file,) = log.files.values()
    reshape(log, evolution_with_text_columns(log.table, ["at"]), SequentialEngine())
    (after,) = log.files.values()
    assert after.is_same(previous_file)
    assert (previous_file.statistics.nulls, after.statistics.nulls) == (
        {"id": 0, "at": 0, "day": 0},
        {"id": 0, "at": 0, "at_text": 1, "day": 0},
    )
    apply(log, changes, Position(APP, Lsn(20)), SequentialEngine())
    assert stored_rows(tmp_path / "public/t", "id", "at_text") == [(1, None), (2, "infinity")]
