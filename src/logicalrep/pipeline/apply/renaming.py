"""A renamed table, stored under its new name without a load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from logicalrep.pipeline.formats.stored_table import NewTable, StoredTable, TableFormat
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, sizes_of
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True)
class Copied:
    """A stored table as it was, whatever its folder is used for later."""

    stored: StoredTable
    table: TableSpec
    files: tuple[DataFile, ...]

    @classmethod
    def of(cls, stored: StoredTable) -> Self:
        """Return a stored table as it is."""
        return cls(stored, stored.table, tuple(stored.files.values()))


def move(
    copied: Copied,
    tables: TableFormat,
    name: TableName,
    folder: str,
    application: str,
    lsn: Lsn,
    load: str,
    keep_hours: float,
) -> StoredTable:
    """Return the stored table with the same rows in another folder; one that is there is replaced in one commit.

    Args:
        copied: the stored table; its folder stays as it is.
        tables: the destination's tables.
        name: the table's new name.
        folder: the new folder.
        application: the application id of the new stored table's transactions.
        lsn: the rows have all commits up to this LSN.
        load: the new stored table's own load.
        keep_hours: the hours for which old versions can be read.

    Raises StorageError if the destination cannot be read or written.
    """
    storage = copied.stored.storage
    for path in sizes_of(copied.files):
        storage.copy(f"{copied.stored.folder}/{path}", f"{folder}/{path}")
    table = replace(copied.table, relation=replace(copied.table.relation, schema=name.schema, name=name.name))
    before = tables.open(folder)
    return tables.replace(folder, NewTable(table, copied.files, application, lsn, load, keep_hours), before)
