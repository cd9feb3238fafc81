"""The Delta tables of a destination, by folder, with or without entries in Unity Catalog."""

from __future__ import annotations

from dataclasses import dataclass

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.delta.unity_catalog import UnityCatalog
from logicalrep.pipeline.formats.stored_table import NewTable, StoredTable, TableFormat
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage


@dataclass(frozen=True)
class DeltaTables(TableFormat):
    storage: Storage
    catalog: UnityCatalog | None = None

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        return DeltaLog.open(self.storage, folder, version)

    def replace(self, folder: str, new: NewTable, previous: StoredTable | None) -> StoredTable:
        return DeltaLog.replace(self.storage, folder, new, previous)

    @property
    def are_registered(self) -> bool:
        return self.catalog is not None

    def register(self, folder: str, table: TableSpec) -> None:
        if self.catalog is not None:
            self.catalog.register(folder, table)

    def remove(self, folder: str) -> None:
        # Without the files, a repeated call would not find the table.
        if self.catalog is not None:
            self.catalog.remove(folder)
        super().remove(folder)

    def find_folders(self) -> set[str]:
        return {path.partition("/_delta_log/")[0] for path in self.storage.list("") if "/_delta_log/" in path}
