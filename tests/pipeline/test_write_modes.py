"""Tables that mark rows in place of copying files, and those that change between both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FormatName
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import open_stored, read_properties, read_table
from tests.pipeline.replicating import replicate_for_warnings
from tests.pipeline.stored import MARKS_IN_SMALL_FILES
from tests.postgres.servers import Database


def marked_files(storage: Path, folder: str) -> tuple[int, bool]:
    """Return how many files of a table have marked rows, and whether its readers have to know vectors."""
    stored = open_stored(storage, folder)
    count = sum(file.vector is not None for file in stored.files.values())
    if stored.table.settings.format == "iceberg":
        return count, stored.table.marks_rows
    protocol = DeltaTable(str(storage / folder)).protocol()
    return count, "deletionVectors" in (protocol.reader_features or ())


def load_of(storage: Path) -> str:
    stored = open_stored(storage, "public/t")
    return stored.load


@pytest.mark.parametrize(
    ("table_format", "marks"), [("delta", "Delta's deletion vectors"), ("iceberg", "Iceberg's position deletes")]
)
def test_a_table_goes_to_marked_rows_and_back_without_a_load(
    db18: Database, tmp_path: Path, table_format: FormatName, marks: str
) -> None:
    limits = MARKS_IN_SMALL_FILES
    options: dict[str, Any] = {"history": True, "append": True, "format": table_format}
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, at timestamptz)",
        "CREATE TABLE other (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, md5(i::text), now() FROM generate_series(1, 3000) AS i",
        "INSERT INTO other SELECT i, md5(i::text) FROM generate_series(1, 3000) AS i",
    )
    change = (
        "UPDATE t SET v = 'new' WHERE id % 100 = 1",
        "DELETE FROM t WHERE id % 100 = 2",
        "UPDATE other SET v = id",
    )
    replicate_for_warnings(db18, tmp_path, limits=limits, **options)
    load = load_of(tmp_path)
    db18.execute(*change)
    config = {"tables": {"t": {"write_mode": "merge-on-read"}}}
    warnings = replicate_for_warnings(db18, tmp_path, limits=limits, **options, config=config)
    assert (
        f"public.t: write_mode changed to merge-on-read: replicate marks removed rows from now on, and readers must support {marks}"
        in warnings
    )
    assert not [text for text in warnings if "other" in text]
    db18.execute("UPDATE t SET v = 'newer' WHERE id % 100 = 3", "UPDATE other SET v = 'newer' WHERE id < 5")
    assert replicate_for_warnings(db18, tmp_path, limits=limits, **options, config=config) == []
    assert marked_files(tmp_path, "public/t") == (1, True)
    assert marked_files(tmp_path, "public/t~history") == (1, True)
    # Changes never go, and a table that was not asked for stays as it was.
    assert marked_files(tmp_path, "public/t~changes") == (0, False)
    assert marked_files(tmp_path, "public/other") == (0, False)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t", "public.other"]) == {}
    versions = read_table(str(tmp_path / "public/t~history")).num_rows
    assert versions == 3000 + 30 + 30

    db18.execute("UPDATE t SET v = 'newest' WHERE id % 100 = 4")
    warnings = replicate_for_warnings(
        db18, tmp_path, limits=limits, **options, config={"tables": {"t": {"history": True}}}
    )
    assert [text for text in warnings if f"files with marked rows, and readers no longer need {marks}" in text]
    assert marked_files(tmp_path, "public/t") == (0, False)
    assert marked_files(tmp_path, "public/t~history") == (0, False)
    properties = read_properties(str(tmp_path / "public/t"))
    assert "delta.enableDeletionVectors" not in properties
    # The readers that know no vectors have the rows again.
    assert read_table(str(tmp_path / "public/t")).num_rows == 2970
    assert read_table(str(tmp_path / "public/t~history")).num_rows == versions + 30
    assert find_differences(db18.dsn, str(tmp_path), ["public.t", "public.other"]) == {}
    assert load_of(tmp_path) == load


def test_a_large_table_is_offered_marking_at_its_first_load(db18: Database, tmp_path: Path) -> None:
    limits = Limits(large_table_bytes=100)
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (2)",
        "CREATE TABLE small (id int PRIMARY KEY)",
    )
    warnings = replicate_for_warnings(db18, tmp_path / "copied", limits=limits)
    assert ["write_mode = merge-on-read" in text for text in warnings if text.startswith("public.t has")] == [True]
    assert not [text for text in warnings if text.startswith("public.small has")]
    warnings = replicate_for_warnings(db18, tmp_path / "marked", limits=limits, write_mode="merge-on-read")
    assert not [text for text in warnings if " GB" in text]
