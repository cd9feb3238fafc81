"""The Iceberg tables of a destination."""

from __future__ import annotations

from dataclasses import dataclass

from logicalrep.pipeline.formats.iceberg.iceberg_table import IcebergTable
from logicalrep.pipeline.formats.iceberg.metadata import find_folders
from logicalrep.pipeline.formats.stored_table import NewTable, StoredTable, TableFormat
from logicalrep.pipeline.storage.storage import Storage


@dataclass(frozen=True)
class IcebergTables(TableFormat):
    """The Iceberg tables of a destination, without a catalog."""

    storage: Storage

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        return IcebergTable.open(self.storage, folder, version)

    def replace(self, folder: str, made: NewTable, before: StoredTable | None) -> StoredTable:
        return IcebergTable.replace(self.storage, folder, made, before)

    def find_folders(self) -> set[str]:
        return find_folders(self.storage)
