"""The versions of a table's metadata in its folder, without a catalog.

A version is one file `metadata/v<number>.metadata.json`, which must not exist yet. `metadata/version-hint.text` has the
last number, or that of one before it: whoever opens the table looks whether there is a next one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, update_table_metadata

from logicalrep.pipeline.formats.iceberg import versions
from logicalrep.pipeline.formats.iceberg.foreign_commits import change_between, writer_of
from logicalrep.pipeline.formats.iceberg.memory_files import location
from logicalrep.pipeline.formats.iceberg.metadata import metadata_path, read_metadata
from logicalrep.pipeline.formats.iceberg.old_versions import keep_old_versions
from logicalrep.pipeline.formats.iceberg.versions import LaterCommits, MetadataVersion, MetadataVersions
from logicalrep.pipeline.storage.storage import Storage, StorageError

_FILE = re.compile(r"v(\d+)\.metadata\.json")
_HINT = "metadata/version-hint.text"


class FolderVersions(MetadataVersions):
    """The versions of a table's metadata in its folder."""

    commits_snapshots = False

    def __init__(self, storage: Storage, folder: str) -> None:
        """Take the table's folder."""
        self._storage, self._folder = storage, folder
        self._last = self._hinted = 0
        self._first: int | None = None

    def find(self, number: int | None = None) -> MetadataVersion | None:
        number = self._find_last() if number is None else number
        found = None if number is None else self._read(number)
        if found is not None:
            self._last = max(self._last, found.number)
        return found

    def _find_last(self) -> int | None:
        hint = (self._storage.read(f"{self._folder}/{_HINT}") or b"").decode(errors="replace").strip()
        found = int(hint) if hint.isdecimal() else None
        if found is None or not self._is_there(found):
            found = max(self._numbers().values(), default=None)
        while found is not None and self._is_there(found + 1):
            found += 1
        return found

    def _is_there(self, number: int) -> bool:
        return self._storage.read(metadata_path(self._folder, number)) is not None

    def _numbers(self) -> dict[str, int]:
        """Return the numbers of the versions that are there, by their paths in the table's folder."""
        names = (path.rpartition("/")[2] for path in self._storage.list(f"{self._folder}/metadata"))
        return {f"metadata/{name}": int(match[1]) for name in names if (match := _FILE.fullmatch(name))}

    def _read(self, number: int) -> MetadataVersion | None:
        path = metadata_path(self._folder, number)
        metadata = read_metadata(self._storage, path)
        return None if metadata is None else MetadataVersion(number, metadata, path)

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        number = 1 if last is None else last.number + 1
        earlier = None if last is None else location(self._storage, last.name)
        after = update_table_metadata(start, tuple(updates), metadata_location=earlier)
        if not self._storage.create(metadata_path(self._folder, number), after.model_dump_json().encode()):
            return None
        self._last = number
        # It is a hint: what is not written now is written by the next commit, or in the upkeep.
        with suppress(StorageError):
            self._write_hint()
        return MetadataVersion(number, after, metadata_path(self._folder, number))

    def _write_hint(self) -> None:
        self._storage.write(f"{self._folder}/{_HINT}", str(self._last).encode())
        self._hinted = self._last

    def follow(self, last: MetadataVersion | None) -> LaterCommits:
        writers, is_foreign, changes = set(), False, None
        while (there := self._read(1 if last is None else last.number + 1)) is not None:
            writer = writer_of(there.metadata, there.number)
            if writer is None:
                is_foreign = True
                changes = changes or (None if last is None else change_between(last.metadata, there.metadata))
            else:
                writers.add(writer)
            last = there
            self._last = last.number
        return LaterCommits(last, frozenset(writers), is_foreign, changes)

    def changed_by_others(self, last: MetadataVersion, known: int) -> str | None:
        for number in range(last.number, max(known, 1) - 1, -1):
            there = self._read(number)
            if there is None:
                return f"what was committed as version {number} is not there any more"
            if writer_of(there.metadata, number) is not None or number == known:
                return None if number == last.number else change_between(there.metadata, last.metadata)
        return None

    def find_needed(self) -> set[str]:
        numbers = self._numbers()
        self._first = min(numbers.values(), default=None)
        return {*numbers, _HINT}

    @property
    def is_upkeep_due(self) -> bool:
        return self._hinted < self._last or self.is_upkeep_urgent

    @property
    def is_upkeep_urgent(self) -> bool:
        return self._first is not None and self._first < self._last - versions.KEPT_VERSIONS - versions.SAVE_EVERY

    def maintain(self, oldest: float) -> None:
        if self._hinted < self._last:
            self._write_hint()
        first, end = self._first, self._last - versions.KEPT_VERSIONS
        if first is not None and self.is_upkeep_urgent:
            there = (found for number in range(first, end) if (found := self._read(number)) is not None)
            keep_old_versions(self._storage, self._folder, there, oldest)
            for number in range(first, end):
                self._storage.delete(metadata_path(self._folder, number))
                self._first = number + 1
