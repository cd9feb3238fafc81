"""The Delta tables of a destination, by folder."""

from __future__ import annotations

from dataclasses import dataclass

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import NewTable, StoredTable, TableFormat
from logicalrep.pipeline.storage.storage import Storage


@dataclass(frozen=True)
class DeltaTables(TableFormat):
    storage: Storage

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        return DeltaLog.open(self.storage, folder, version)

    def replace(self, folder: str, new: NewTable, previous: StoredTable | None) -> StoredTable:
        return DeltaLog.replace(self.storage, folder, new, previous)

    def find_folders(self) -> set[str]:
        return {path.partition("/_delta_log/")[0] for path in self.storage.list("") if "/_delta_log/" in path}
