"""Iceberg tables for tests of one part of replicate."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.iceberg.manifests import Manifest, read_manifests
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.field_ids import LAST_UPDATE, ROW_ID
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.data_files import read_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.histories import NAMES, OID, table
from tests.pipeline.reading import newest_metadata
from tests.pipeline.stored import APP, WriteMode


def new_table(
    storage: Storage,
    key: tuple[str, ...] | None = ("id",),
    mode: WriteMode = "copy-on-write",
    load: str = "x",
    version: int = 2,
) -> StoredTable:
    spec = table(key, TableSettings(write_mode=mode, format="iceberg", format_version=version))
    tables = IcebergTables.in_folders(storage)
    content = NewTable(spec, [], Position(APP, Lsn(999)), load=load, keep_hours=24)
    return tables.replace("public/t", content, tables.open("public/t"))


def insert(stored: StoredTable, lsn: int, ids: range, *, texts: str = "x") -> None:
    """Insert rows in a commit of its own."""
    rows = [(id_, {"id": str(id_), "b": texts, "v": None, "big": "big"}) for id_ in ids]
    changes = [{"op": "insert", "after": row, "commit_lsn": lsn} for _, row in rows]
    apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


def update(stored: StoredTable, lsn: int, ids: range, texts: str) -> None:
    """Update rows in a commit of its own."""
    rows = [{"id": str(id_), "b": texts, "v": None, "big": "big"} for id_ in ids]
    changes = [{"op": "update", "after": row, "commit_lsn": lsn} for row in rows]
    apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


def delete(stored: StoredTable, lsn: int, ids: range) -> None:
    changes = [{"op": "delete", "before": {"id": str(id_)}, "commit_lsn": lsn} for id_ in ids]
    apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


def snapshot_of(path: Path) -> Snapshot:
    snapshot = StaticTable.from_metadata(newest_metadata(str(path / "public/t"))).current_snapshot()
    assert snapshot is not None
    return snapshot


def reopened(storage: Storage) -> StoredTable:
    stored = IcebergTables.in_folders(storage).open("public/t")
    assert stored is not None
    return stored


def metadata_of(storage: Storage) -> TableMetadata:
    return StaticTable.from_metadata(newest_metadata(storage.uri_of("public/t"))).metadata


def manifests_of(storage: Storage, path: Path) -> list[Manifest]:
    return read_manifests(storage, storage.path_of(snapshot_of(path).manifest_list))


def lineage(stored: StoredTable) -> dict[int, tuple[int, int]]:
    """Return the row id and the number of the last update of each row, by its key. No two rows have one id."""
    rows = [
        row
        for file in stored.files.values()
        for row in read_rows(
            stored.storage, stored.folder, file, stored.table.moved, ["id", ROW_ID, LAST_UPDATE]
        ).to_pylist()
    ]
    assert len({row[ROW_ID] for row in rows}) == len(rows)
    assert None not in {value for row in rows for value in row.values()}
    return {row["id"]: (row[ROW_ID], row[LAST_UPDATE]) for row in rows}
