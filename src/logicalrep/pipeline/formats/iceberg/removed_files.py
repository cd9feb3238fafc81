"""The files that the last version of an Iceberg table no longer needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Container

from logicalrep.pipeline.formats.removed_files import RemovedFile, RemovedFiles
from logicalrep.pipeline.storage.storage import Storage


class IcebergRemovedFiles(RemovedFiles):
    """The removed files of an Iceberg table.

    A file that an earlier process removed, and did not save in the list, counts as removed when it is found. A snapshot
    is removed before a file that it needs is deleted.
    """

    def __init__(self, storage: Storage, folder: str, expire: Callable[[float], Container[str]]) -> None:
        """Take the table's folder, and a function that removes the snapshots superseded up to a time.

        The function takes the time in seconds since 1970, and returns the files that the remaining snapshots need.
        """
        super().__init__(storage, folder)
        self.expire = expire
        self.deleted_until = 0.0
        """Time in seconds since 1970: all files that were removed up to it are deleted."""

    def removal_time(self, written: float) -> float:
        return time.time()

    def prepare_deletion(self, file: RemovedFile) -> bool:
        if file.path in self.expire(file.at):
            return False
        self.deleted_until = max(self.deleted_until, file.at)
        return True
