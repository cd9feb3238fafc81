"""The paths of files in a Delta log: percent-encoded, and absolute, as other programs write them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.delta.logged_paths import removed_path, stored_path
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import LoadReasons
from tests.pipeline.odd_names import ODD_VALUES
from tests.pipeline.replicating import replicate_meanwhile
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, MODES, WriteMode
from tests.postgres.servers import Database

CONFIG: dict[str, Any] = {"tables": {"t": {"partition_by": "city"}}}


@pytest.mark.parametrize(
    ("logged", "uri", "path"),
    [
        ("part-1.parquet", "/lake/t", "part-1.parquet"),
        ("p=New%2520York/1.parquet", "/lake/t", "p=New%20York/1.parquet"),
        ("p=a%253Ab/1.parquet", "s3://lake/t", "p=a%3Ab/1.parquet"),
        ("file:/lake/t/p=%2525/1.parquet", "/lake/t", "p=%25/1.parquet"),
        ("file:///lake/a%2520b/1.parquet", "/lake/a%20b", "1.parquet"),
        ("s3a://lake/a%2520b/1.parquet", "s3://lake/a%2520b", "1.parquet"),
        ("/lake/t/1.parquet", "/lake/t", "1.parquet"),
        ("/lake/other/1.parquet", "/lake/t", None),
        ("s3://other/t/1.parquet", "s3://lake/t", None),
        ("%2E%2E/1.parquet", "/lake/t", None),
        ("/lake/t/../u/1.parquet", "/lake/t", None),
        ("", "/lake/t", None),
    ],
)
def test_a_path_of_a_log_is_within_the_folder_or_refused(logged: str, uri: str, path: str | None) -> None:
    assert removed_path(logged, uri) == path
    if path is None:
        with pytest.raises(MalformedFileError, match=r"outside of the table's folder|not a path below"):
            stored_path(logged, uri)
    else:
        assert stored_path(logged, uri) == path


@pytest.mark.parametrize("mode", MODES)
def test_merged_files_of_partitions_with_escaped_names_are_followed_and_stay(
    db18: Database, tmp_path: Path, mode: WriteMode
) -> None:
    limits = MARKS_IN_SMALL_FILES
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, city text, v text)")
    with db18.writer() as writer, writer.cursor() as cursor:
        cities = [*ODD_VALUES, None]
        cursor.executemany("INSERT INTO t VALUES (%s, %s, 'first')", list(enumerate(cities)))
        cursor.executemany("INSERT INTO t VALUES (%s, %s, 'first')", list(enumerate(cities, 100)))
        writer.commit()
        loads = LoadReasons()
        folder = tmp_path / "public/t"
        with replicate_meanwhile(db18, tmp_path, loads, limits=limits, config=CONFIG, write_mode=mode) as caught_up:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, 'second')", list(enumerate(cities, 200)))
            writer.commit()
            caught_up()
            assert DeltaTable(str(folder)).optimize.z_order(["id"])["numFilesAdded"] > len(ODD_VALUES)
            db18.execute("UPDATE t SET v = 'third' WHERE id >= 200", "DELETE FROM t WHERE id BETWEEN 100 AND 199")
            caught_up()
            DeltaTable(str(folder)).create_checkpoint()
            assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
    assert loads.reasons == ["new table"]
    # Without a batch that removes them, upkeep has to know them as files of the table.
    for path in folder.rglob("*.parquet"):
        os.utime(path, (1, 1))
    stored = DeltaLog.open(Storage(str(tmp_path)), "public/t")
    assert stored is not None
    stored.maintain(0)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")} - {*stored.files} == {
        path.relative_to(folder).as_posix() for path in (folder / "_delta_log").glob("*.parquet")
    }
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
