"""The files of an Iceberg table that its last version does not need any more."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection

from logicalrep.pipeline.formats.iceberg.metadata import metadata_path
from logicalrep.pipeline.formats.iceberg.old_versions import keep_old_versions
from logicalrep.pipeline.formats.removed_files import RemovedFile, RemovedFiles
from logicalrep.pipeline.storage.storage import Storage

_METADATA = re.compile(r"metadata/(?:v(\d+)\.metadata\.json|version-hint\.text)")


class VersionsRemoved(RemovedFiles):
    """The files that the last version needs no more, and the earlier versions of the metadata.

    What an earlier process removed and did not save counts as removed when it is found. A snapshot is removed before a
    file that it needs is deleted.
    """

    def __init__(self, storage: Storage, folder: str, expire: Callable[[float], None]) -> None:
        """Take the table's folder, and what removes the snapshots that were the last ones up to a time."""
        super().__init__(storage, folder)
        self.expire = expire
        self._first: int | None = None

    def removal_of(self, written: float) -> float:
        return time.time()

    def leave(self, file: RemovedFile) -> None:
        self.expire(file.at)

    def recall(self, version: int, used: Collection[str], keep_hours: float) -> None:
        names = (path.removeprefix(f"{self.folder}/") for path in self.storage.list(f"{self.folder}/metadata"))
        matches = {name: match for name in names if (match := _METADATA.fullmatch(name))}
        self._first = min((int(match[1]) for match in matches.values() if match[1]), default=None)
        super().recall(version, {*used, *matches}, keep_hours)

    def has_versions_before(self, version: int) -> bool:
        """Return whether the metadata has versions before one."""
        return self._first is not None and self._first < version

    def delete_versions_before(self, version: int, keep_hours: float) -> None:
        """Delete the versions of the metadata before one; what reading them takes stays for the hours."""
        if self._first is None or self._first >= version:
            return
        keep_old_versions(self.storage, self.folder, range(self._first, version), time.time() - keep_hours * 3600)
        while self._first < version:
            self.storage.delete(metadata_path(self.folder, self._first))
            self._first += 1
