"""The data files of a table's old versions, which stay for a while for readers."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from logicalrep.pipeline.storage.storage import DamagedError, Storage, below

_LIST = "_removed.json"
"""The file with the list of them in the table's folder."""
_LEAST_AGE = 3600.0
"""The seconds after which a file that is in no version is taken for one of a commit that was never made."""
_SEARCH_AGAIN = 24 * 3600.0
"""The seconds between two searches for such files."""


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A data file that is in the last version no more."""

    at: float
    """The time at which it was removed, in seconds since 1970."""
    path: str
    size: int


class RemovedFiles:
    """The files that are in the last version no more and still there, in the order in which they were removed.

    A format has one of its own, which knows what its versions removed.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        """Take the table's folder; `recall` finds the files that earlier processes removed."""
        self.storage = storage
        self.folder = folder
        self._files: deque[RemovedFile] = deque()
        self._paths: set[str] = set()
        self._recalled = -_SEARCH_AGAIN
        self._size = 0

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[RemovedFile]:
        return iter(self._files)

    @property
    def is_complete(self) -> bool:
        """Whether the files of earlier processes are known."""
        return time.monotonic() - self._recalled < _SEARCH_AGAIN

    def add(self, file: RemovedFile) -> None:
        """Add a file that was removed now, unless it has been added already."""
        if file.path in self._paths:
            return
        self._files.append(file)
        self._paths.add(file.path)
        self._size += file.size

    def record_commit(self, previous: Mapping[str, int], current: Mapping[str, int]) -> None:
        """Note what a commit removed: files of the version before are not needed any more, or are again.

        Args:
            before: the sizes of the files that the version before needs, by their paths.
            now: those of the last version.
        """
        for path in previous.keys() - current.keys():
            self.add(RemovedFile(time.time(), path, previous[path]))
        self._keep(current.keys() - previous.keys())

    def _keep(self, paths: Iterable[str]) -> None:
        """Forget files that are in the last version again."""
        live = self._paths.intersection(paths)
        if live:
            self._files = deque(file for file in self._files if file.path not in live)
            self._paths -= live
            self._size = sum(file.size for file in self._files)

    def removed_since(self, listed: int, version: int) -> list[RemovedFile]:
        """Return the files that the commits after a version removed, as far as the format tells them."""
        return []

    def removal_time(self, written: float) -> float:
        """Return when a file that is in no version was removed, given when it was written."""
        return written

    def has_surplus(self, live_bytes: int, keep_hours: float) -> bool:
        """Return whether one is to be deleted, beside files of the last version with so many bytes."""
        limits = self.storage.limits
        is_old = bool(self._files) and self._files[0].at < time.time() - keep_hours * 3600
        return is_old or self._size > limits.retained_factor * live_bytes + limits.retained_bytes

    def delete_surplus(self, live_bytes: int, keep_hours: float) -> None:
        """Delete some of those that are to be deleted, the first ones first. Arguments are those of `has_surplus`."""
        for _ in range(self.storage.limits.deleted_files):
            if not self.has_surplus(live_bytes, keep_hours):
                break
            file = self._files[0]
            if self.prepare_deletion(file):
                self.storage.delete(below(self.folder, file.path))
            self._files.popleft()
            self._paths.remove(file.path)
            self._size -= file.size

    def prepare_deletion(self, file: RemovedFile) -> bool:
        """Do what has to be done before a file is deleted; return False if it has to stay.

        A file that stays is forgotten; the next search for files that are in no version finds it again.
        """
        return True

    def save(self, version: int) -> None:
        """Save them, all those of the commits up to a version."""
        content = {"version": version, "removed": [(file.at, file.path, file.size) for file in self._files]}
        self.storage.write(f"{self.folder}/{_LIST}", json.dumps(content).encode())

    def recall(self, version: int, live: Collection[str], used: Container[str], keep_hours: float) -> None:
        """Find the files that earlier processes removed: those of the list, and of the commits since.

        Files that were written and are in no version are found too, once they are old.

        Args:
            version: the last version.
            live: the paths of its files.
            used: these paths, and the paths of all other files that have to stay.
            keep_hours: the hours for which old versions can be read.

        Raises DamagedError if a data file of the last version is not there: what is taken for an orphan may be that
        file by another name, and nothing is deleted.
        """
        listed, removed = self.storage.parse(f"{self.folder}/{_LIST}", _parse_list) or (-1, [])
        removed += self.removed_since(listed, version)
        times = {path.removeprefix(f"{self.folder}/"): at for path, at in self.storage.times(self.folder).items()}
        missing = sorted(path for path in live if path not in times)
        if missing:
            more = f", and {len(missing) - 1} others" if len(missing) > 1 else ""
            raise DamagedError(
                f"{self.storage.uri_of(self.folder)}/{missing[0]} is not there{more}, which the table needs: nothing "
                "is deleted"
            )
        # A file of which more rows are marked is removed and added, often before it goes.
        last = {file.path: file for file in removed if file.path in times and file.path not in used}
        removed = sorted(last.values(), key=lambda file: file.at)
        removed_paths = self._paths | {file.path for file in removed}
        oldest = time.time() - max(keep_hours * 3600, _LEAST_AGE)
        orphans = [
            RemovedFile(self.removal_time(at), path, 0)
            for path, at in times.items()
            if at < oldest and path not in used and path not in removed_paths and _is_data(path)
        ]
        files = [*(file for file in orphans + removed if file.path not in self._paths), *self._files]
        files.sort(key=lambda file: file.at)
        self._files = deque(files)
        self._paths = {file.path for file in files}
        self._size = sum(file.size for file in files)
        self._recalled = time.monotonic()


def _parse_list(content: Any) -> tuple[int, list[RemovedFile]]:
    return int(content["version"]), [RemovedFile(*file) for file in content["removed"]]


def _is_data(path: str) -> bool:
    # A file that was being written has a dot before its name.
    return not path.startswith("_") or path.rpartition("/")[2].startswith(".")
