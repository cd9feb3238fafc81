"""Tables that are replicated with an index of their keys: whatever happens to them, they are as on the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.index.key_index import IndexedRows, KeyIndex
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.storage.data_files import DataFile
from tests.pipeline.comparison import find_differences
from tests.pipeline.index.small_indexes import index_small_tables
from tests.pipeline.replicating import replicate_for_warnings
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, WriteMode
from tests.postgres.servers import Database

LIMITS = index_small_tables(MARKS_IN_SMALL_FILES)


@pytest.fixture
def row_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Let small tables have indexes; return, for each lookup, how many files the index had."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    numbers: list[int] = []
    find = KeyIndex.find

    def counted(self: KeyIndex, files: list[DataFile], keys: Any) -> dict[str, IndexedRows]:
        rows = find(self, files, keys)
        numbers.append(len(rows))
        return rows

    monkeypatch.setattr(KeyIndex, "find", counted)
    return numbers


CHANGES = [
    "UPDATE t SET v = 'new' WHERE id % 100 = 1",
    "DELETE FROM t WHERE id % 100 = 2",
    "INSERT INTO t (id, v, w) SELECT id * 100 + 2, 'again', 0 FROM generate_series(0, 9) AS id",
    "UPDATE t SET id = id + 100000 WHERE id % 100 = 3",
    "ALTER TABLE t ADD COLUMN more int DEFAULT 7",
    "UPDATE t SET more = 8 WHERE id % 100 = 4",
    "ALTER TABLE t RENAME COLUMN id TO number",
    "UPDATE t SET v = 'renamed' WHERE number % 100 = 5",
    "ALTER TABLE t ALTER COLUMN number TYPE bigint",
    "UPDATE t SET v = 'wider' WHERE number % 100 = 6",
    "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (w, number)",
    "UPDATE t SET v = 'other key' WHERE number % 100 = 7",
    # Names of columns change hands, in Iceberg with the files that there are.
    "ALTER TABLE t DROP CONSTRAINT t_pkey, DROP COLUMN w, ADD COLUMN w bigint NOT NULL DEFAULT 1, ADD PRIMARY KEY (number)",
    "UPDATE t SET w = 100000 - number, v = 'swapped' WHERE true",
    "UPDATE t SET v = 'before' WHERE number % 100 = 8",
    """DO $$ BEGIN
        ALTER TABLE t DROP CONSTRAINT t_pkey;
        ALTER TABLE t RENAME COLUMN number TO x;
        ALTER TABLE t RENAME COLUMN w TO number;
        ALTER TABLE t RENAME COLUMN x TO w;
        ALTER TABLE t ADD PRIMARY KEY (number);
    END $$""",
    "UPDATE t SET v = 'other column' WHERE w % 100 = 11",
    "DELETE FROM t WHERE w % 100 = 12",
    "TRUNCATE t",
    "INSERT INTO t (number, v, w) SELECT i, md5(i::text), i % 7 FROM generate_series(1, 1000) AS i",
    "UPDATE t SET v = 'after' WHERE number % 100 = 8",
]


@pytest.mark.parametrize(
    ("table_format", "mode"),
    [
        ("delta", "merge-on-read"),
        pytest.param("iceberg", "merge-on-read", marks=pytest.mark.thorough),
        pytest.param("delta", "copy-on-write", marks=pytest.mark.thorough),
        pytest.param("iceberg", "copy-on-write", marks=pytest.mark.thorough),
    ],
)
def test_rows_are_found_whatever_happens_to_the_table(
    db18: Database, tmp_path: Path, table_format: FormatName, mode: WriteMode, row_counts: list[int]
) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, w int NOT NULL)",
        "INSERT INTO t SELECT i, md5(i::text), i % 7 FROM generate_series(1, 3000) AS i",
    )
    options: dict[str, Any] = {"write_mode": mode, "history": True, "index_size": 100.0, "format": table_format}
    for number, change in enumerate(["SELECT", "SELECT", *CHANGES]):
        db18.execute(change)
        replicate_for_warnings(db18, tmp_path / "lake", limits=LIMITS, **options)
        if number % 4 == 0:
            assert find_differences(db18.dsn, str(tmp_path / "lake"), ["public.t"]) == {}
    assert find_differences(db18.dsn, str(tmp_path / "lake"), ["public.t"]) == {}
    # A batch after a load, or after files were written anew for other columns, reads all keys.
    assert len(row_counts) >= 8
    assert sum(count > 0 for count in row_counts) > len(row_counts) // 2
    # On another machine there is no index.
    for path in sorted((tmp_path / "cache").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    db18.execute("UPDATE t SET v = 'elsewhere' WHERE number % 100 = 9")
    replicate_for_warnings(db18, tmp_path / "lake", limits=LIMITS, **options)
    assert find_differences(db18.dsn, str(tmp_path / "lake"), ["public.t"]) == {}
    assert {path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {".json", ".run"}


def test_a_table_is_not_indexed_unless_that_is_asked_for(db18: Database, tmp_path: Path, row_counts: list[int]) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 100)")
    replicate_for_warnings(db18, tmp_path / "lake", limits=LIMITS)
    db18.execute("UPDATE t SET id = -id")
    replicate_for_warnings(db18, tmp_path / "lake", limits=LIMITS)
    assert find_differences(db18.dsn, str(tmp_path / "lake"), ["public.t"]) == {}
    assert row_counts == []
    assert not (tmp_path / "cache").exists()
