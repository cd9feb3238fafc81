"""A renamed table, stored under the new name without a reload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable, TableFormat
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, file_sizes
from logicalrep.transactions.table_names import TableName


@dataclass(frozen=True)
class Copied:
    """A snapshot of a stored table, unaffected by later use of its folder."""

    stored: StoredTable
    table: TableSpec
    files: tuple[DataFile, ...]

    @classmethod
    def of(cls, stored: StoredTable) -> Self:
        return cls(stored, stored.table, tuple(stored.files.values()))

    def renamed(self, name: TableName, position: Position, load: str, keep_hours: float) -> NewTable:
        """Return the stored table under another name, as a load of its own.

        Args:
            name: the new name.
            position: the position of the rows.
            load: the new stored table's load.
            keep_hours: the hours for which old versions can be read.
        """
        table = replace(self.table, relation=replace(self.table.relation, schema=name.schema, name=name.name))
        return NewTable(table, self.files, position, load, keep_hours)


def move(copied: Copied, tables: TableFormat, folder: str, new: NewTable) -> StoredTable:
    """Copy a stored table into another folder, and replace the folder's table, if any, in one commit.

    Args:
        copied: the stored table; its folder stays as it is.
        tables: the destination's tables.
        folder: the new folder.
        new: the stored table under its new name.

    Raises StorageError if the destination cannot be read or written.
    """
    storage = copied.stored.storage
    tables.prepare(folder, new.table)
    for path in file_sizes(copied.files):
        storage.copy(f"{copied.stored.folder}/{path}", f"{folder}/{path}")
    return tables.replace(folder, new, tables.open(folder))
