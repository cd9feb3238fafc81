"""Deletion vectors of Iceberg tables of version 3, also where they replace the position deletes of version 2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.puffin import PuffinFile

from logicalrep.pipeline.apply.setting_changes import upgrade
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.iceberg.deletes.vectors import read_vectors
from logicalrep.pipeline.formats.iceberg.manifests import entry_of, key_of
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from tests.pipeline.formats.iceberg.tables import (
    delete,
    insert,
    lineage,
    manifests_of,
    metadata_of,
    new_table,
    reopened,
    update,
)
from tests.pipeline.reading import read_iceberg
from tests.pipeline.stored import MARKS_IN_SMALL_FILES

ENGINE = SequentialEngine()


def test_each_file_has_at_most_one_vector_which_a_later_one_replaces(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored = new_table(storage, mode="merge-on-read", version=3)
    for number in range(3):
        insert(stored, 1000 + number, range(100 * number, 100 * number + 100))
    delete(stored, 1010, range(5, 10))
    # One commit marks rows of two files, and the vector of the third file stays.
    delete(stored, 1011, range(95, 105))
    delete(stored, 1012, range(210, 220))
    entries = [
        entry.data_file
        for manifest in manifests_of(storage, tmp_path)
        if manifest.is_of_deletes
        for entry in manifest.entries
    ]
    assert sorted(entry.record_count for entry in entries) == [5, 10, 10]
    assert len({key_of(entry) for entry in entries}) == 3
    assert not [*tmp_path.rglob("deletes-*.parquet")]
    blobs = [blob for path in tmp_path.rglob("deletes-*.puffin") for blob in PuffinFile(path.read_bytes()).footer.blobs]
    assert sorted(int(blob.properties["cardinality"]) for blob in blobs) == [5, 5, 10, 10]
    assert {blob.properties["referenced-data-file"] for blob in blobs} == {
        storage.location(f"public/t/{path}") for path in stored.files
    }
    assert read_iceberg(storage.uri_of("public/t")).num_rows == 275
    assert reopened(storage).files == stored.files


def test_damaged_vectors_are_noticed(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored = new_table(storage, mode="merge-on-read", version=3)
    insert(stored, 1000, range(100))
    delete(stored, 1001, range(5, 10))
    (path,) = tmp_path.rglob("deletes-*.puffin")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="a deletion vector is damaged"):
        delete(reopened(storage), 1002, range(20, 25))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content_offset": None}, "has no data file, no place"),
        ({"referenced_data_file": None}, "has no data file, no place"),
        ({"file_path": "/lake/public/u/deletes.puffin"}, "in another folder"),
        ({"record_count": 8}, "has 8 rows in"),
        ({}, "has two deletion vectors"),
    ],
)
def test_entries_that_the_format_forbids_are_refused(changes: dict[str, object], message: str) -> None:
    storage = Storage("/lake")
    data = entry_of(file_path="/lake/public/t/part.parquet", record_count=7)
    vector = {
        "content": DataFileContent.POSITION_DELETES,
        "file_format": FileFormat.PUFFIN,
        "file_path": "/lake/public/t/deletes.puffin",
        "record_count": 2,
        "referenced_data_file": data.file_path,
        "content_offset": 4,
        "content_size_in_bytes": 40,
    }
    entries = [
        ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, sequence_number=2, data_file=entry_of(**values))
        for values in (vector, vector | changes)
    ]
    data_entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, sequence_number=1, data_file=data)
    with pytest.raises(ValueError, match=message):
        read_vectors(
            storage, "public/t", entries if not changes else entries[1:], {"public/t/part.parquet": data_entry}
        )


def test_an_upgrade_keeps_position_deletes_until_a_vector_replaces_them(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored = new_table(storage, mode="merge-on-read")
    insert(stored, 1000, range(100))
    insert(stored, 1001, range(100, 200))
    delete(stored, 1002, range(90, 110))
    files, rows = set(stored.files), read_iceberg(storage.uri_of("public/t")).num_rows
    settings = replace(stored.table.settings, format_version=3)
    upgrade(stored, ENGINE, settings)
    assert (set(stored.files), rows, metadata_of(storage).format_version) == (files, 180, 3)
    # A repeated call, as after a lost answer, changes nothing.
    version = stored.version
    upgrade(stored, ENGINE, settings)
    assert (stored.version, reopened(storage).files, reopened(storage).table) == (version, stored.files, stored.table)
    first = lineage(stored)
    assert {row_id for row_id, _ in first.values()} == {*range(200)} - {*range(90, 110)}
    update(stored, 1003, range(10), "y")

    def formats() -> list[str]:
        return sorted(
            f"{entry.data_file.file_format.value} {entry.data_file.record_count}"
            for manifest in manifests_of(storage, tmp_path)
            if manifest.is_of_deletes
            for entry in manifest.entries
        )

    # The positions of the other file are still needed.
    assert formats() == ["PARQUET 20", "PUFFIN 20"]
    assert read_iceberg(storage.uri_of("public/t")).num_rows == 180
    update(reopened(storage), 1004, range(110, 115), "y")
    assert formats() == ["PUFFIN 15", "PUFFIN 20"]
    assert read_iceberg(storage.uri_of("public/t")).num_rows == 180
    last = lineage(reopened(storage))
    assert {key: row_id for key, (row_id, _) in last.items()} == {key: row_id for key, (row_id, _) in first.items()}
    metadata = metadata_of(storage)
    assert isinstance(metadata, TableMetadataV3)
    assert metadata.next_row_id == 215
