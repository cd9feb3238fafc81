"""The Iceberg tables of a destination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logicalrep.pipeline.formats.iceberg.iceberg_table import IcebergTable
from logicalrep.pipeline.formats.iceberg.metadata import find_folders
from logicalrep.pipeline.formats.stored_table import StoredTable, TableFormat
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True)
class IcebergTables(TableFormat):
    """The Iceberg tables of a destination, without a catalog."""

    storage: Storage

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        return IcebergTable.open(self.storage, folder, version)

    def replace(
        self,
        folder: str,
        table: TableSpec,
        files: Sequence[DataFile],
        application: str,
        lsn: Lsn,
        *,
        load: str,
        keep_hours: float,
        before: StoredTable | None,
    ) -> StoredTable:
        return IcebergTable.replace(
            self.storage, folder, table, files, application, lsn, load=load, keep_hours=keep_hours, before=before
        )

    def find_folders(self) -> set[str]:
        return find_folders(self.storage)
