"""The files of an Iceberg table that its last version does not need any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Container

from logicalrep.pipeline.formats.removed_files import RemovedFile, RemovedFiles
from logicalrep.pipeline.storage.storage import Storage


class IcebergRemovedFiles(RemovedFiles):
    """The files that the last version needs no more.

    What an earlier process removed and did not save counts as removed when it is found. A snapshot is removed before a
    file that it needs is deleted.
    """

    def __init__(self, storage: Storage, folder: str, expire: Callable[[float], Container[str]]) -> None:
        """Take the table's folder, and what removes the snapshots that were the last ones up to a time.

        It returns the paths of the files that snapshots which stay need.
        """
        super().__init__(storage, folder)
        self.expire = expire
        self.deleted_until = 0.0
        """All files that were removed up to this time, in seconds since 1970, are deleted."""

    def removal_time(self, written: float) -> float:
        return time.time()

    def prepare_deletion(self, file: RemovedFile) -> bool:
        if file.path in self.expire(file.at):
            return False
        self.deleted_until = max(self.deleted_until, file.at)
        return True
