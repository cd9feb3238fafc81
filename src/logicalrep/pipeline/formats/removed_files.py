"""The files that only old versions of a table need, and their deletion after the retention."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from logicalrep.pipeline.storage.storage import DamagedError, Storage, below

REMOVED_FILE = "_removed.json"
"""The list of removed files, in the table's folder."""
_LEAST_AGE = 3600.0
"""Age in seconds from which a file that is in no version is an orphan of a commit that failed."""
_SEARCH_INTERVAL = 24 * 3600.0
"""Seconds between two searches for orphans."""


@dataclass(frozen=True, slots=True)
class RemovedFile:
    at: float
    """The time of the removal, in seconds since 1970."""
    path: str
    size: int


class RemovedFiles:
    """The existing files that the last version does not need, in the order of their removal.

    Each format has a subclass, which knows the files that the format's commits removed.
    """

    own_folders: tuple[str, ...] = ()
    """The folders of files beside the data files, which begin with an underscore."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder
        self._files: deque[RemovedFile] = deque()
        self._paths: set[str] = set()
        self._recalled = -_SEARCH_INTERVAL
        self._size = 0

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[RemovedFile]:
        return iter(self._files)

    @property
    def is_complete(self) -> bool:
        """Whether `recall` has found the files that earlier processes removed, within the last day."""
        return time.monotonic() - self._recalled < _SEARCH_INTERVAL

    def add(self, file: RemovedFile) -> None:
        if file.path in self._paths:
            return
        self._files.append(file)
        self._paths.add(file.path)
        self._size += file.size

    def record_commit(self, previous: Mapping[str, int], current: Mapping[str, int]) -> None:
        """Add the files that a commit removed, and forget the files that the last version needs again.

        Args:
            previous: the sizes of the files that the previous version needs, by their paths.
            current: the sizes of the files that the last version needs, by their paths.
        """
        for path in previous.keys() - current.keys():
            self.add(RemovedFile(time.time(), path, previous[path]))
        self._forget_live(current.keys() - previous.keys())

    def _forget_live(self, paths: Iterable[str]) -> None:
        live = self._paths.intersection(paths)
        if live:
            self._files = deque(file for file in self._files if file.path not in live)
            self._paths -= live
            self._size = sum(file.size for file in self._files)

    def removed_since(self, listed: int, version: int) -> list[RemovedFile]:
        """Return the files that the commits after a version removed, if the format stores them."""
        return []

    def removal_time(self, written: float) -> float:
        """Return the removal time of a file that is in no version, from its write time; both in seconds since 1970."""
        return written

    def has_surplus(self, live_bytes: int, keep_hours: float) -> bool:
        """Return whether a file is due for deletion: it is older than `keep_hours`, or the files are too large.

        `live_bytes` is the size of the last version's files.
        """
        limits = self.storage.limits
        is_old = bool(self._files) and self._files[0].at < time.time() - keep_hours * 3600
        return is_old or self._size > limits.retained_factor * live_bytes + limits.retained_bytes

    def delete_surplus(self, live_bytes: int, keep_hours: float) -> None:
        """Delete up to `Limits.deleted_files` files that are due, oldest first. Arguments as in `has_surplus`."""
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
        """Prepare a file's deletion; return False if the file has to stay.

        A file that stays is forgotten; the next search for orphans finds it again.
        """
        return True

    def save(self, version: int) -> None:
        content = {"version": version, "removed": [(file.at, file.path, file.size) for file in self._files]}
        self.storage.write(f"{self.folder}/{REMOVED_FILE}", json.dumps(content).encode())

    def _is_data(self, path: str) -> bool:
        # The name of an unfinished file begins with a dot.
        is_own = not path.startswith("_") or path.startswith(self.own_folders)
        return is_own or path.rpartition("/")[2].startswith(".")

    def recall(self, version: int, live: Collection[str], used: Container[str], keep_hours: float) -> None:
        """Find the files that earlier processes removed: from the list, from later commits, and old orphans.

        Args:
            version: the last version.
            live: the paths of the last version's files.
            used: the paths of all files that have to stay, including `live`.
            keep_hours: the hours for which old versions can be read.

        Raises DamagedError if a file of the last version is missing: an apparent orphan may be that file under another
        name, so nothing is deleted.
        """
        listed, removed = self.storage.parse(f"{self.folder}/{REMOVED_FILE}", _parse_list) or (-1, [])
        removed += self.removed_since(listed, version)
        times = {path.removeprefix(f"{self.folder}/"): at for path, at in self.storage.times(self.folder).items()}
        missing = sorted(path for path in live if path not in times)
        if missing:
            more = f", and {len(missing) - 1} others" if len(missing) > 1 else ""
            raise DamagedError(
                f"{self.storage.uri_of(self.folder)}/{missing[0]} does not exist{more}, but the table needs it: "
                "nothing is deleted"
            )
        # A commit that marks more rows of a file removes and adds the file: its last removal counts.
        last = {file.path: file for file in removed if file.path in times and file.path not in used}
        removed = sorted(last.values(), key=lambda file: file.at)
        removed_paths = self._paths | {file.path for file in removed}
        oldest = time.time() - max(keep_hours * 3600, _LEAST_AGE)
        orphans = [
            RemovedFile(self.removal_time(at), path, 0)
            for path, at in times.items()
            if at < oldest and path not in used and path not in removed_paths and self._is_data(path)
        ]
        files = [*(file for file in orphans + removed if file.path not in self._paths), *self._files]
        files.sort(key=lambda file: file.at)
        self._files = deque(files)
        self._paths = {file.path for file in files}
        self._size = sum(file.size for file in files)
        self._recalled = time.monotonic()


def _parse_list(content: Any) -> tuple[int, list[RemovedFile]]:
    return int(content["version"]), [RemovedFile(*file) for file in content["removed"]]
