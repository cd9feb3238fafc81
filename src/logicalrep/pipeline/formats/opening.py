"""The tables of a destination in the format that they have: the one module that knows which that is."""

from __future__ import annotations

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog, find_folders
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.storage.storage import Storage


def open_table(storage: Storage, folder: str) -> StoredTable | None:
    """Return the table in a folder of a destination; None if there is none.

    Raises:
        LogDamagedError: what is there is damaged.
        ForeignTableError: it is a table of another program.
        StorageError: it cannot be read now.
    """
    return DeltaLog.open(storage, folder)


replace_table = DeltaLog.replace
find_table_folders = find_folders
