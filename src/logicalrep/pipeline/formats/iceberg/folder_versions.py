"""The versions of a table's metadata in its folder, without a catalog.

A version is one file `metadata/v<number>.metadata.json`, which must not exist yet. Upkeep deletes old versions, whose
names can then be created again: a process that slept must not make the past current. So the last version is the file
with the highest number, and a commit lists the numbers after it has created its file: if a higher number exists, or the
previous number is missing, the commit came too late and removes its file. A reader in between ignores the file, as the
reader takes the highest number too. `metadata/version-hint.text` has the last number for other programs, and this
module never reads it. No store compares and sets the hint: a process that slept before it wrote the hint lists the
numbers again, and corrects the hint.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, update_table_metadata

from logicalrep.pipeline.formats.iceberg.foreign_commits import change_between, writer_of
from logicalrep.pipeline.formats.iceberg.metadata import (
    metadata_path,
    new_metadata,
    next_time,
    read_metadata,
    retention_properties,
    writable,
)
from logicalrep.pipeline.formats.iceberg.old_versions import store_old_versions
from logicalrep.pipeline.formats.iceberg.versions import LaterCommits, MetadataVersion, MetadataVersions
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage, StorageError

_FILE = re.compile(r"v(\d+)\.metadata\.json")
_HINT = "metadata/version-hint.text"


class FolderVersions(MetadataVersions):
    commits_snapshots = False
    does_upkeep = True

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage, self._folder = storage, folder
        self._last = self._hinted = self._expired = 0
        self._first: int | None = None
        self._times: deque[tuple[int, float]] = deque()
        """The times from which versions were no longer the last version, by the clock of `time.monotonic`."""

    def find(self, number: int | None = None) -> MetadataVersion | None:
        if number is None:
            return self._find_last()
        version = self._read(number)
        if version is not None:
            self._advance(version.number)
        return version

    def _advance(self, number: int) -> None:
        if number > self._last:
            self._last = number
            self._times.append((number - 1, time.monotonic()))

    def _find_last(self) -> MetadataVersion | None:
        while numbers := self._numbers():
            version = self.find(numbers[-1])
            if version is not None:
                return version
            # Upkeep of another process has deleted the version meanwhile: later versions exist.
        return None

    def _numbers(self, after: int = 0) -> list[int]:
        matches = map(_FILE.fullmatch, self._storage.names(f"{self._folder}/metadata", "v"))
        return sorted(number for match in matches if match and (number := int(match[1])) > after)

    def _read(self, number: int) -> MetadataVersion | None:
        path = metadata_path(self._folder, number)
        metadata = read_metadata(self._storage, path)
        return None if metadata is None else MetadataVersion(number, metadata, path)

    def commit_of(self, version: MetadataVersion) -> str | None:
        return f"{version.metadata.last_updated_ms}-{version.metadata.current_snapshot_id}"

    def start(self, table: TableSpec, properties: Mapping[str, str]) -> TableMetadata:
        return new_metadata(self._storage, self._folder, table, properties)

    def retention(self, hours: float) -> dict[str, str]:
        return retention_properties(hours, self._storage.limits)

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        number = 1 if last is None else last.number + 1
        earlier = None if last is None else self._storage.location(last.name)
        after = update_table_metadata(start, tuple(updates), metadata_location=earlier)
        if snapshot_id is None:
            # pyiceberg takes the clock's time, whatever the time of the last commit.
            after = after.model_copy(update={"last_updated_ms": next_time(start)})
        version = MetadataVersion(number, after, metadata_path(self._folder, number))
        if not self._storage.create(version.name, writable(after).model_dump_json().encode()):
            return None
        expected = [number] if last is None else [last.number, number]
        if self._numbers(number - 2) != expected:
            self._take_back(version)
            return None
        self._advance(number)
        # The next commit, or upkeep, writes a missing hint.
        with suppress(StorageError):
            self._write_hint()
        return version

    def _take_back(self, version: MetadataVersion) -> None:
        """Delete a version that was created after later versions, unless the next version follows from it."""
        next_version = self._read(version.number + 1)
        log = [] if next_version is None else next_version.metadata.metadata_log
        uri, written = self._storage.location(version.name), version.metadata.last_updated_ms
        if (uri, written) not in [(entry.metadata_file, entry.timestamp_ms) for entry in log]:
            self._storage.delete(version.name)

    def _write_hint(self) -> None:
        numbers = [self._last]
        while numbers:
            hint = numbers[-1]
            self._storage.write(f"{self._folder}/{_HINT}", str(hint).encode())
            # If this process slept before the write, the hint may be behind.
            numbers = self._numbers(hint)
        self._hinted = self._last

    def follow(self, last: MetadataVersion | None) -> LaterCommits:
        writers, is_foreign, changes = set(), False, None
        base = last
        if base is not None and base.number not in self._numbers():
            is_foreign, changes = True, f"the metadata of version {base.number} no longer exists"
        # Upkeep of another process may delete listed versions before this loop reads them: later versions exist then.
        while numbers := self._numbers(0 if last is None else last.number):
            for version in filter(None, map(self._read, numbers)):
                writer = writer_of(version.metadata, version.number)
                if writer is None:
                    is_foreign = True
                    changes = changes or (None if last is None else change_between(last.metadata, version.metadata))
                else:
                    writers.add(writer)
                last = version
                self._advance(last.number)
        return LaterCommits(None if changes and last is base else last, frozenset(writers), is_foreign, changes)

    def foreign_change(self, last: MetadataVersion, proven: int) -> str | None:
        for number in range(last.number, max(proven, 1) - 1, -1):
            version = self._read(number)
            if version is None:
                return f"the metadata of version {number} no longer exists"
            if writer_of(version.metadata, number) is not None or number == proven:
                return None if number == last.number else change_between(version.metadata, last.metadata)
        return None

    def find_needed(self) -> set[str]:
        numbers = self._numbers()
        self._first = min(numbers, default=None)
        return {_HINT, *(metadata_path(self._folder, number).removeprefix(f"{self._folder}/") for number in numbers)}

    @property
    def is_upkeep_due(self) -> bool:
        return self._hinted < self._last or self.is_upkeep_urgent

    @property
    def is_upkeep_urgent(self) -> bool:
        return self._first is not None and self._first < self._end() - self._storage.limits.upkeep_versions

    def _end(self) -> int:
        """Return the first version that stays: the last versions, and versions that were the last a short time ago."""
        limits = self._storage.limits
        while self._times and self._times[0][1] <= time.monotonic() - limits.metadata_seconds:
            self._expired, _ = self._times.popleft()
        return min(self._last - limits.metadata_versions, self._expired + 1)

    def maintain(self, oldest: float) -> None:
        if self._hinted < self._last:
            self._write_hint()
        first, end = self._first, self._end()
        if first is not None and self.is_upkeep_urgent:
            versions = (version for number in range(first, end) if (version := self._read(number)) is not None)
            store_old_versions(self._storage, self._folder, versions, oldest)
            for number in range(first, end):
                self._storage.delete(metadata_path(self._folder, number))
                self._first = number + 1
