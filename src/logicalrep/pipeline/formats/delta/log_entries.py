"""The entries of a Delta table's log: one JSON file for each commit, and the last checkpoint.

Upkeep of replicate, or of other programs, removes entries before a checkpoint. Sources: "Delta Log Entries" and "Last
Checkpoint File" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from logicalrep.pipeline.formats.delta.removed_files import commit_path
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class LogEntries:
    storage: Storage
    folder: str
    """The table's folder."""

    def read(self, version: int) -> bytes | None:
        """Return the commit of a version; None if its entry was removed or never existed."""
        return self.storage.read(commit_path(self.folder, version))

    def create(self, version: int, commit: bytes) -> bool:
        """Create the entry of a version; return False if it exists."""
        return self.storage.create(commit_path(self.folder, version), commit)

    def delete(self, version: int) -> None:
        self.storage.delete(commit_path(self.folder, version))

    def read_last_checkpoint(self) -> int:
        """Return the version of the last checkpoint; -1 without a checkpoint."""
        path = f"{self.folder}/_delta_log/_last_checkpoint"
        last = self.storage.parse(path, lambda content: int(content["version"]))
        return -1 if last is None else last

    def versions_after(self, version: int) -> list[int]:
        last = commit_path(self.folder, version).rpartition("/")[2]
        return _versions_in(self._names(last))

    def later_versions(self, version: int, own_version: int) -> list[int]:
        """Return the versions after a version. Raises DamagedError if another program removed the log.

        Args:
            version: the version.
            own_version: a version up to it that this process has read or written; -1 for a new table.
        """
        if self.storage.is_local and self._is_last(version, own_version):
            return []
        first = f"{own_version:020}." if own_version >= 0 else ""
        names = self._names(first)
        later_versions = [number for number in _versions_in(names) if number > version]
        # Upkeep removes the entry of a version only after later versions.
        if first and not later_versions and not any(name.startswith(first) for name in names):
            raise DamagedError(f"{self.storage.uri_of(self.folder)}: its log no longer has version {own_version}")
        return later_versions

    def _is_last(self, version: int, own_version: int) -> bool:
        """Return whether a version is the last; False if only a list of the log can tell.

        A list costs each commit on a disk as much as a log has entries. Upkeep removes entries, also of the next
        version, only once `_last_checkpoint` has a later version.
        """
        if own_version < 0 or self.read(own_version) is None or self.read(version + 1) is not None:
            return False
        try:
            return self.read_last_checkpoint() <= version
        except MalformedFileError:
            return False

    def _names(self, after: str) -> list[str]:
        return self.storage.names(f"{self.folder}/_delta_log", after)


def _versions_in(names: Sequence[str]) -> list[int]:
    return [int(match[1]) for match in map(_COMMIT.fullmatch, names) if match]


def digest(commit: bytes) -> str:
    """Return the identity of a commit among all commits with its version."""
    return hashlib.blake2b(commit, digest_size=8).hexdigest()
