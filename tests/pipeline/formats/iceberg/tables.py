"""Iceberg tables for tests of one part of replicate."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.histories import NAMES, OID, table
from tests.pipeline.reading import newest_metadata
from tests.pipeline.stored import APP, WriteMode


def new_table(
    storage: Storage, key: tuple[str, ...] | None = ("id",), mode: WriteMode = "copy-on-write", load: str = "x"
) -> StoredTable:
    spec = table(key, TableSettings(write_mode=mode, format="iceberg"))
    tables = IcebergTables.in_folders(storage)
    content = NewTable(spec, [], Position(APP, Lsn(999)), load=load, keep_hours=24)
    return tables.replace("public/t", content, tables.open("public/t"))


def insert(stored: StoredTable, lsn: int, ids: range, *, texts: str = "x") -> None:
    """Insert rows in a commit of its own."""
    rows = [(id_, {"id": str(id_), "b": texts, "v": None, "big": "big"}) for id_ in ids]
    changes = [{"op": "insert", "after": row, "commit_lsn": lsn} for _, row in rows]
    apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


def delete(stored: StoredTable, lsn: int, ids: range) -> None:
    changes = [{"op": "delete", "before": {"id": str(id_)}, "commit_lsn": lsn} for id_ in ids]
    apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


def snapshot_of(path: Path) -> Snapshot:
    snapshot = StaticTable.from_metadata(newest_metadata(str(path / "public/t"))).current_snapshot()
    assert snapshot is not None
    return snapshot
