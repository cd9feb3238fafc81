"""Tables of one destination as Iceberg tables: commits, marked rows, and what other readers see."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.formats import removed_files
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.iceberg.manifests import read_manifests
from logicalrep.pipeline.formats.stored_table import Position, StoredTable
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.tables import delete, insert, new_table, snapshot_of
from tests.pipeline.histories import History, Row
from tests.pipeline.reading import newest_metadata, read_iceberg
from tests.pipeline.stored import APP, KEYS, MARKS_IN_SMALL_FILES, MODES, PicklingTasks, WriteMode, texts_of


def rows_at(storage: Storage) -> Counter[Row]:
    return texts_of(read_iceberg(storage.uri_of("public/t")))


def polars_rows(storage: Storage) -> pa.Table:
    return polars.scan_iceberg(newest_metadata(storage.uri_of("public/t"))).collect().to_arrow()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
def test_batches_are_applied_as_they_are_to_a_delta_table(
    tmp_path: Path, key: tuple[str, ...] | None, mode: WriteMode
) -> None:
    limits = Limits(small_file_bytes=1, marked_share=1, small_manifests=2, snapshots=5)
    storage, chance = Storage(str(tmp_path), limits=limits), random.Random(3)
    stored, history = new_table(storage, key, mode), History(key, chance)
    kept: list[list[ChangeBatch]] = []
    has_vectors = False
    for _ in range(12):
        for _ in range(chance.randrange(1, 60)):
            history.step()
        kept.append(history.take())
        repeated = [batch for batches in kept[-chance.randrange(1, 4) :] for batch in batches]
        apply(stored, repeated, Position(APP, Lsn(history.lsn - 1)), PicklingTasks())
        assert rows_at(storage) == history.truth()
        if chance.random() < 0.3:
            reopened = IcebergTables.in_folders(storage).open("public/t")
            assert reopened is not None
            assert (reopened.version, reopened.table) == (stored.version, stored.table)
            assert reopened.files == stored.files
            assert reopened.applied(APP) == stored.applied(APP)
            stored = reopened
        has_vectors |= any(file.vector is not None for file in stored.files.values())
    assert has_vectors == (mode == "merge-on-read")
    assert texts_of(polars_rows(storage)) == history.truth()


def ids_at(storage: Storage) -> list[int]:
    return sorted(read_iceberg(storage.uri_of("public/t"))["id"].to_pylist())


def reopened(storage: Storage) -> StoredTable:
    stored = IcebergTables.in_folders(storage).open("public/t")
    assert stored is not None
    return stored


@pytest.mark.parametrize("hint", ["1", "2", "99", "", "no number", None])
def test_the_last_version_is_found_whatever_the_hint_says(tmp_path: Path, hint: str | None) -> None:
    storage = Storage(str(tmp_path))
    stored = new_table(storage)
    insert(stored, 1000, range(3))
    insert(stored, 1001, range(3, 5))
    path = tmp_path / "public/t/metadata/version-hint.text"
    assert path.read_text() == str(stored.version) == "3"
    path.unlink()
    if hint is not None:
        path.write_text(hint)
    assert reopened(storage).version == 3
    insert(reopened(storage), 1002, range(5, 6))
    assert path.read_text() == "4"
    assert ids_at(storage) == list(range(6))


def test_merges_and_row_changes_by_another_program_are_reported(tmp_path: Path) -> None:
    storage, folder = Storage(str(tmp_path)), tmp_path / "public/t"
    stored = new_table(storage)
    insert(stored, 1000, range(3))
    for operation, changes in (("replace", None), ("delete", "delete of another program has changed its rows")):
        metadata = json.loads(Path(newest_metadata(str(folder))).read_text())
        last = next(
            snapshot for snapshot in metadata["snapshots"] if snapshot["snapshot-id"] == metadata["current-snapshot-id"]
        )
        number = stored.version + 1
        new_snapshot = last | {"snapshot-id": number, "parent-snapshot-id": last["snapshot-id"]}
        new_snapshot |= {"sequence-number": last["sequence-number"] + 1, "summary": {"operation": operation}}
        metadata |= {"snapshots": [*metadata["snapshots"], new_snapshot], "current-snapshot-id": number}
        metadata |= {
            "last-sequence-number": new_snapshot["sequence-number"],
            "refs": {"main": {"snapshot-id": number, "type": "branch"}},
        }
        (folder / f"metadata/v{number}.metadata.json").write_text(json.dumps(metadata))
        assert reopened(storage).foreign_change(number - 1) == changes
        with pytest.raises(StorageError if changes is None else DamagedError, match=changes or "without changing rows"):
            insert(stored, 1000 + number, range(3, 5))
        assert stored.version == number
        insert(stored, 1000 + number, range(number, number + 1))
    assert reopened(storage).foreign_change(1) is None


def test_marked_rows_are_positions_in_one_small_file_of_a_commit(tmp_path: Path) -> None:
    limits = MARKS_IN_SMALL_FILES
    storage = Storage(str(tmp_path), limits=limits)
    stored = new_table(storage, mode="merge-on-read")
    insert(stored, 1000, range(100))
    (data,) = stored.files
    for number in range(3):
        delete(stored, 1001 + number, range(10 * number, 10 * number + 5))
    assert data in stored.files
    assert stored.files[data].live_rows == 85
    (manifest,) = (
        manifest_file
        for manifest_file in read_manifests(storage, storage.path_of(snapshot_of(tmp_path).manifest_list))
        if manifest_file.is_of_deletes
    )
    # The last commit's file has the deletes of earlier commits too.
    (entry,) = manifest.entries
    assert entry.data_file.record_count == 15
    assert reopened(storage).files == stored.files
    assert len(ids_at(storage)) == 85


@pytest.mark.slow
def test_upkeep_deletes_old_snapshots_and_their_own_files(tmp_path: Path) -> None:
    limits = Limits(snapshots=20, metadata_seconds=0, upkeep_versions=10)
    storage = Storage(str(tmp_path), limits=limits)
    stored = new_table(storage)
    for number in range(60):
        insert(stored, 1000 + number, range(number, number + 1))
        if number % 10 == 9:
            stored.maintain(1000)
    assert len(snapshots_of(tmp_path)) <= 20
    # Every snapshot that is there can be read.
    for snapshot_id in snapshots_of(tmp_path):
        StaticTable.from_metadata(newest_metadata(str(tmp_path / "public/t"))).scan(snapshot_id=snapshot_id).to_arrow()
    kept = list((tmp_path / "public/t/metadata").glob("v*.metadata.json"))
    assert len(kept) <= limits.metadata_versions + limits.upkeep_versions + 1
    # A commit that a kill has left half.
    orphan = tmp_path / "public/t/part-00000000000000000000000000000000.parquet"
    orphan.write_bytes(b"half")
    os.utime(orphan, (0, 0))
    table = reopened(storage)
    assert table.is_upkeep_due(0)
    table.maintain(0)
    while table.is_upkeep_due(0):
        table.maintain(0)
    assert not orphan.exists()
    assert len(snapshots_of(tmp_path)) == 1
    needed = set(table.files) | {"_removed.json", "_versions.json", "metadata/version-hint.text"}
    paths = {path.relative_to(tmp_path / "public/t").as_posix() for path in (tmp_path / "public/t").rglob("*.*")}
    assert {path for path in paths - needed if not path.startswith("metadata/")} == set()
    assert ids_at(storage) == list(range(60))
    version = table.version
    table.maintain(0)
    assert table.version == version


@pytest.mark.slow
def test_versions_whose_files_were_deleted_for_room_are_forgotten(tmp_path: Path) -> None:
    limits = Limits(retained_bytes=50_000, retained_factor=0, metadata_seconds=0, upkeep_versions=5)
    storage = Storage(str(tmp_path), limits=limits)
    stored, previous_data, kept = new_table(storage), b"", []
    for number in range(60):
        insert(stored, 1000 + number, range(number, number + 1))
        stored.maintain(1000)
        data = storage.read("public/t/_versions.json") or b""
        if data != previous_data:
            previous_data, numbers = data, [number for number, *_ in json.loads(data)["versions"]]
            kept.append(len(numbers))
            for version in numbers:
                assert IcebergTables.in_folders(storage).open("public/t", version) is not None
    # They are as many as there is room for, however many commits there were.
    assert len(kept) > 6
    assert 3 < kept[-1] < 20
    assert stored.version - limits.metadata_versions - limits.upkeep_versions > 40


def test_a_removed_file_that_is_recorded_twice_is_deleted_once(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write("public/t/a", b"x")
    removed = removed_files.RemovedFiles(storage, "public/t")
    # A load that commits again follows what others have committed a second time.
    for _ in range(2):
        removed.record_commit({"a": 1}, {})
    removed.delete_surplus(0, -1)
    assert (len(removed), storage.list("public/t")) == (0, [])
    assert not removed.has_surplus(0, -1)


def snapshots_of(path: Path) -> list[int]:
    metadata = StaticTable.from_metadata(newest_metadata(str(path / "public/t"))).metadata
    return [snapshot.snapshot_id for snapshot in metadata.snapshots]
