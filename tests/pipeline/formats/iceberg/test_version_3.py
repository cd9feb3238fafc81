"""Iceberg tables of version 3: row ids, which updates, merges and rewrites keep."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

import polars
import pytest
from pyiceberg.table.metadata import TableMetadataV3

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.renaming import Copied, move
from logicalrep.pipeline.apply.reshaping import reshape
from logicalrep.pipeline.apply.setting_changes import change_partitions, upgrade
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.field_ids import ROW_ID
from logicalrep.pipeline.schema.file_partitions import PartitionRule
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.data_files import read_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.apply.evolutions import evolved
from tests.pipeline.formats.iceberg.tables import delete, insert, lineage, metadata_of, new_table, reopened, update
from tests.pipeline.histories import History, table
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.reading import newest_metadata, read_iceberg
from tests.pipeline.stored import APP, KEYS, MARKS_IN_SMALL_FILES, MODES, PicklingTasks, WriteMode, texts_of

ENGINE = SequentialEngine()


def refuse_other_ids(storage: Storage, stored: StoredTable) -> None:
    """Check that each snapshot begins with the ids after the last one's, and that the table's next id is unused."""
    metadata, end = metadata_of(storage), 0
    assert isinstance(metadata, TableMetadataV3)
    for snapshot in metadata.snapshots:
        assert snapshot.first_row_id is not None
        assert snapshot.added_rows is not None
        assert snapshot.first_row_id == end
        end += snapshot.added_rows
    assert metadata.next_row_id == end
    assert all(row_id < end for row_id, _ in lineage(stored).values())


@pytest.mark.parametrize("mode", MODES)
def test_updates_merges_and_rewrites_keep_the_ids_of_rows(tmp_path: Path, mode: WriteMode) -> None:
    storage = Storage(str(tmp_path), limits=replace(MARKS_IN_SMALL_FILES, merged_files=2, small_manifests=2))
    stored = new_table(storage, mode=mode, version=3)
    insert(stored, 1000, range(100))
    first = lineage(stored)
    assert {row_id for row_id, _ in first.values()} == set(range(100))
    update(stored, 1001, range(50), "y")
    delete(stored, 1002, range(20, 25))
    insert(stored, 1003, range(100, 110))
    update(stored, 1004, range(40, 60), "z")
    updated = lineage(stored)
    assert {key: updated[key][0] for key in updated if key < 100} == {
        key: row_id for key, (row_id, _) in first.items() if key not in range(20, 25)
    }
    numbers = Counter(number for _, number in updated.values())
    # The commits that inserted, updated, inserted and updated the rows; the first commit created the table.
    assert numbers == {2: 40, 3: 35, 5: 10, 6: 20}
    while merge_next(stored, ENGINE):
        assert lineage(stored) == updated
    reshape(stored, evolved(stored.table, "7"), ENGINE)
    assert lineage(stored) == updated
    partitioned = replace(stored.table, partitions=(PartitionRule("bucket", 1, 2),))
    change_partitions(stored, ENGINE, partitioned)
    assert lineage(stored) == updated
    refuse_other_ids(storage, stored)
    opened = reopened(storage)
    assert (opened.files, lineage(opened)) == (stored.files, updated)
    assert read_iceberg(storage.uri_of("public/t")).num_rows == 105


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "mode"),
    [
        (("id",), "merge-on-read"),
        *(pytest.param(key, mode, marks=pytest.mark.thorough) for key in KEYS for mode in MODES if key != ("id",)),
        pytest.param(("id",), "copy-on-write", marks=pytest.mark.thorough),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
def test_random_batches_are_applied_and_read(tmp_path: Path, key: tuple[str, ...] | None, mode: WriteMode) -> None:
    limits = Limits(small_file_bytes=1, marked_share=1, small_manifests=2, snapshots=5, batch_bytes=2000)
    storage, chance = Storage(str(tmp_path), limits=limits), random.Random(3)
    stored, history = new_table(storage, key, mode, version=3), History(key, chance)
    for _ in range(8):
        for _ in range(chance.randrange(1, 60)):
            history.step()
        apply(stored, history.take(), Position(APP, Lsn(history.lsn - 1)), PicklingTasks())
        assert texts_of(read_iceberg(storage.uri_of("public/t"))) == history.truth()
        opened = reopened(storage)
        assert opened.files == stored.files
        lineage(opened)
        stored = opened
        if chance.random() < 0.5:
            merge_next(stored, ENGINE)
    rows = polars.scan_iceberg(newest_metadata(storage.uri_of("public/t"))).collect().to_arrow()
    assert texts_of(rows) == history.truth()


def test_no_load_lowers_the_version_of_a_table(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    stored = new_table(storage, version=3)
    insert(stored, 1000, range(10))
    row_ids = {row_id for row_id, _ in lineage(stored).values()}
    loaded = new_table(storage, load="y")
    assert loaded.table.settings.format_version == 3
    insert(loaded, 1001, range(10))
    assert metadata_of(storage).format_version == 3
    # A load inserts rows: the ids of removed rows are never used again.
    assert row_ids.isdisjoint(row_id for row_id, _ in lineage(loaded).values())


def test_rows_of_a_renamed_table_never_share_an_id(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored = new_table(storage, mode="merge-on-read", version=3)
    insert(stored, 1000, range(100))
    update(stored, 1001, range(50), "y")
    updated = lineage(stored)
    tables = IcebergTables.in_folders(storage)
    copied = Copied.of(stored)
    new = copied.renamed(TableName("public", "u"), Position("logicalrep/1/1/u", Lsn(1001)), "u", 24)
    moved = move(copied, tables, "public/u", new)
    ids = lineage(moved)
    # Rows with a written id keep it.
    assert [ids[key][0] for key in range(50)] == [updated[key][0] for key in range(50)]
    opened = tables.open("public/u")
    assert opened is not None
    assert lineage(opened) == ids
    rows = read_iceberg(storage.uri_of("public/u"))
    assert sorted(rows["id"].to_pylist()) == [*range(100)]


@pytest.mark.parametrize("form", ["history", "marked"])
def test_of_the_rows_that_come_from_one_row_one_keeps_the_id(
    tmp_path: Path, form: Literal["history", "marked"]
) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    settings = TableSettings(
        format="iceberg", format_version=3, history=form == "history", deletes="soft" if form == "marked" else "hard"
    )
    spec = replace(table(("id",), settings), companion="history" if form == "history" else None)
    new = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
    stored = IcebergTables.in_folders(storage).replace("public/t", new, None)
    insert(stored, 1000, range(4))
    update(stored, 1001, range(2), "y")
    update(stored, 1002, range(2), "z")
    delete(stored, 1003, range(1))
    names = ["id", "b", ROW_ID, *(["_valid_to_lsn"] if form == "history" else ["_is_deleted"])]
    rows = [
        tuple(row.values())
        for file in stored.files.values()
        for row in read_rows(storage, "public/t", file, stored.table.moved, names).to_pylist()
    ]
    assert len({row[2] for row in rows}) == len(rows)
    if form == "marked":
        assert sorted(rows) == [(0, "z", 0, True), (1, "z", 1, False), (2, "x", 2, False), (3, "x", 3, False)]
    else:
        # The version that ends is the row that was there.
        assert sorted(row for row in rows if row[1] == "x") == [
            (0, "x", 0, 1001),
            (1, "x", 1, 1001),
            (2, "x", 2, None),
            (3, "x", 3, None),
        ]


def _is_applied(stored: StoredTable, lsn: int) -> bool:
    return (stored.applied(APP) or 0) >= lsn


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_kills_at_each_write_leave_the_rows_and_their_ids(
    tmp_path: Path, mode: WriteMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is killed at its first write, then at its second one, and so on, until it is done."""
    limits = replace(MARKS_IN_SMALL_FILES, merged_files=2, small_manifests=2)
    storage = Storage(str(tmp_path), limits=limits)
    stored = new_table(storage, mode=mode)
    for number in range(3):
        insert(stored, 1000 + number, range(100 * number, 100 * number + 100))
    delete(stored, 1003, range(240, 260))
    settings = replace(stored.table.settings, format_version=3)

    def merge(stored: StoredTable) -> None:
        while merge_next(stored, ENGINE):
            pass

    steps: list[Callable[[StoredTable], object]] = [
        lambda stored: upgrade(stored, ENGINE, settings),
        lambda stored: None if _is_applied(stored, 1004) else update(stored, 1004, range(50, 150, 2), "y"),
        lambda stored: None if _is_applied(stored, 1005) else update(stored, 1005, range(110, 210), "z"),
        merge,
        lambda stored: None if "new" in stored.table.names else reshape(stored, evolved(stored.table, "7"), ENGINE),
        lambda stored: stored.maintain(0),
    ]
    ids: dict[int, int] = {}
    for step in steps:
        for write in count(1):
            with monkeypatch.context() as patch:
                Kills(patch).at(write)
                with suppress(Killed):
                    step(reopened(storage))
                    break
        opened = reopened(storage)
        assert opened.foreign_change(-1) is None
        ids = ids or {key: row_id for key, (row_id, _) in lineage(opened).items()}
        assert {key: row_id for key, (row_id, _) in lineage(opened).items()} == ids
        assert len(ids) == read_iceberg(storage.uri_of("public/t")).num_rows == 280
    updated = {row["id"]: row["b"] for row in read_iceberg(storage.uri_of("public/t")).to_pylist()}
    assert [updated[key] for key in (50, 51, 110, 209, 210)] == ["y", "x", "z", "z", "x"]
