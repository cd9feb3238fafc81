"""Old versions of tables in a catalog are read for as long as those in folders; over each kind of catalog."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.iceberg.memory_files import StorageFiles
from logicalrep.pipeline.formats.iceberg.metadata import read_metadata
from logicalrep.pipeline.formats.stored_table import StoredTable, WriterError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import read_rows
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage, StorageError
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests
from tests.pipeline.formats.iceberg.catalogs.tables import catalog_table, new_table, open_table
from tests.pipeline.formats.iceberg.tables import insert

pytestmark = [pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning"), pytest.mark.slow]


def ids_of(tables: IcebergTables, version: int) -> tuple[list[int], TableSpec]:
    """Return the ids of a version's rows, and its description."""
    stored = tables.open("public/t", version)
    assert stored is not None, version
    parts = [read_rows(stored.storage, "public/t", file, stored.table.stored, ["id"]) for file in stored.files.values()]
    return sorted(id_ for part in parts for id_ in part["id"].to_pylist()), stored.table


def commit_each(stored: StoredTable, numbers: range, versions: dict[int, tuple[list[int], TableSpec]]) -> None:
    """Insert the rows one after the other, with what upkeep is due, and note what each version has."""
    for number in numbers:
        if number % 4 == 0:
            stored.describe(replace(stored.table, comments=((1, f"comment {number}"),)))
            versions[stored.version] = (list(range(number)), stored.table)
        insert(stored, 1000 + number, range(number, number + 1))
        versions[stored.version] = (list(range(number + 1)), stored.table)
        if stored.is_upkeep_due(24):
            stored.maintain(24)


def test_each_version_is_read_whatever_happens_between(catalog: CatalogOfTests) -> None:
    catalog = catalog.with_limits(Limits(metadata_versions=3, metadata_seconds=0, upkeep_versions=5, snapshots=4))
    versions: dict[int, tuple[list[int], TableSpec]] = {}
    stored = new_table(catalog.open())
    commit_each(stored, range(13), versions)
    # A second writer, and a commit that is not made, leave metadata of a number that another commit takes.
    other = open_table(catalog.open())
    commit_each(stored, range(13, 14), versions)
    with pytest.raises(WriterError):
        insert(other, 5000, range(500, 501))
    catalog.fail_next_commit(is_made=False)
    with pytest.raises(StorageError):
        insert(stored, 1014, range(600, 601))
    # The process ends with metadata that was to be stored, and the next one finds it.
    stored = open_table(catalog.open())
    commit_each(stored, range(14, 30), versions)
    tables = catalog.open()
    assert {version: ids_of(tables, version) for version in versions} == versions
    assert tables.open("public/t", max(versions) + 1) is None
    there_still = [path for path in catalog.storage.list("public/t/metadata") if path.endswith(".metadata.json")]
    assert len(there_still) < 20 < len(versions)

    # Rows that another program adds are not of the version of ours before, whose number they keep.
    catalog_table(catalog).append(catalog_table(catalog).scan().to_arrow().slice(0, 1))
    assert ids_of(tables, max(versions)) == versions[max(versions)]
    with pytest.raises(DamagedError):
        insert(stored, 2000, range(30, 31))


def test_compressed_metadata_is_read(catalog: CatalogOfTests) -> None:
    new_table(catalog.open())
    (path,) = (path for path in catalog.storage.list("public/t/metadata") if path.endswith(".metadata.json"))
    metadata, data = read_metadata(catalog.storage, path), catalog.storage.read(path)
    assert metadata is not None
    assert data is not None
    catalog.storage.write("public/t/metadata/0.gz.metadata.json", gzip.compress(data))
    assert read_metadata(catalog.storage, "public/t/metadata/0.gz.metadata.json") == metadata
    assert read_metadata(catalog.storage, "public/t/metadata/1.gz.metadata.json") is None


def test_compressed_metadata_of_gigabytes_are_refused(tmp_path: Path) -> None:
    limits = Limits(json_bytes=1 << 20)
    storage, path = Storage(str(tmp_path), limits=limits), "t/metadata/0.gz.metadata.json"
    zipped = gzip.compress(b" " * (2 << 20))
    for data, words in (
        (zipped, "has more than 1048576 bytes"),
        (zipped[:100], "is truncated"),
        (b"{}", "incorrect header"),
    ):
        storage.write(path, data)
        with pytest.raises(MalformedFileError, match=words):
            read_metadata(storage, path)
        # As a catalog's library reads it.
        with pytest.raises(MalformedFileError, match=words):
            StorageFiles(storage).new_input(storage.uri_of(path))
