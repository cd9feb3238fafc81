"""Which snapshots of a table stay, and the files that they need: other programs have branches and tags.

The line of main is what replicate writes, and each of its snapshots goes some time after the next one came. A branch or
a tag needs snapshots of main's line, or has its own; replicate removes no snapshot that one of them needs, and no file
of a snapshot that stays. Source: "Snapshot Retention Policy" in the Iceberg Table Spec.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemovePartitionStatisticsUpdate, RemoveSnapshotsUpdate, TableUpdate

from logicalrep.pipeline.formats.iceberg.manifests import read_manifests
from logicalrep.pipeline.formats.iceberg.memory_files import path_of
from logicalrep.pipeline.formats.iceberg.metadata import WRITER
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep_runtime.errors import LogicalRepError

_LEAST, _AGE = "history.expire.min-snapshots-to-keep", "history.expire.max-snapshot-age-ms"
_DEFAULT_AGE = 5 * 24 * 3_600_000


def expired_snapshots(metadata: TableMetadata, until: float | None, keep_hours: float | None, most: int) -> set[int]:
    """Return the snapshots that the next commit removes.

    Args:
        metadata: the metadata of the last version.
        until: the time, in seconds since 1970, up to which snapshots go that another one followed; None for the
            snapshots that are old, or too many.
        keep_hours: the hours for which snapshots stay; None if that is not known yet.
        most: the snapshots of main after which every second one of the older half goes.
    """
    if until is not None:
        return superseded(metadata, until * 1000)
    expired = surplus_snapshots(metadata, most)
    if keep_hours is not None:
        oldest = (time.time() - keep_hours * 3600) * 1000
        expired |= superseded(metadata, oldest) | abandoned(metadata, oldest)
    return expired


def superseded(metadata: TableMetadata, before_ms: float) -> set[int]:
    """Return the snapshots of main that another one followed up to a time, in milliseconds since 1970."""
    line = pairwise(_line_of_main(metadata))
    return {snapshot.snapshot_id for snapshot, successor in line if successor.timestamp_ms <= before_ms} - _needed(
        metadata
    )


def abandoned(metadata: TableMetadata, before_ms: float) -> set[int]:
    """Return the snapshots up to a time, in milliseconds since 1970, that are neither main's nor needed."""
    line = {snapshot.snapshot_id for snapshot in _line_of_main(metadata)}
    old = {snapshot.snapshot_id for snapshot in metadata.snapshots if snapshot.timestamp_ms <= before_ms}
    return old - line - _needed(metadata)


def surplus_snapshots(metadata: TableMetadata, most: int) -> set[int]:
    """Return the snapshots of main that go as there are `most` or more."""
    line, needed = _line_of_main(metadata), _needed(metadata)
    older = [snapshot.snapshot_id for snapshot in line[: len(line) // 2] if snapshot.snapshot_id not in needed]
    return set(older[1::2]) if len(line) >= most else set()


def expiry(metadata: TableMetadata, snapshot_ids: Collection[int]) -> list[TableUpdate]:
    """Return what removes snapshots, and their statistics. Raises ValueError if a reference needs one."""
    if not snapshot_ids:
        return []
    if needed := _needed(metadata).intersection(snapshot_ids):
        raise ValueError(f"the snapshots {needed} are the last one, or needed by a branch or a tag")
    statistics = [file.snapshot_id for file in metadata.partition_statistics if file.snapshot_id in snapshot_ids]
    values: dict[str, Any] = {"snapshot-ids": sorted(snapshot_ids)}
    return [
        *(RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": id_}) for id_ in statistics),
        RemoveSnapshotsUpdate(**values),
    ]


def _line_of_main(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots that were the last one, in order.

    The removal of a snapshot ends the line of parents, and catalogs forget the log before it. So those that replicate
    wrote, which are all main's, belong to it too.
    """
    line = {snapshot.snapshot_id for snapshot in ancestors(metadata, metadata.current_snapshot_id)}
    line |= {entry.snapshot_id for entry in metadata.snapshot_log}
    line |= {
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.summary is not None and WRITER in snapshot.summary.additional_properties
    }
    by_number = sorted(metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
    return [snapshot for snapshot in by_number if snapshot.snapshot_id in line]


def ancestors(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot and those before it, as far as they are there, each once: a file may have a circle of them."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while snapshot_id is not None and (snapshot := by_id.pop(snapshot_id, None)) is not None:
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def _needed(metadata: TableMetadata) -> set[int]:
    """Return the snapshots that the last version, branches and tags need."""
    needed = {metadata.current_snapshot_id} - {None}
    for name, reference in metadata.refs.items():
        needed |= set(_needed_by(metadata, reference, is_main=name == MAIN_BRANCH))
    return {snapshot_id for snapshot_id in needed if snapshot_id is not None}


def _needed_by(metadata: TableMetadata, reference: SnapshotRef, *, is_main: bool) -> Iterator[int]:
    if reference.snapshot_ref_type == SnapshotRefType.TAG:
        yield reference.snapshot_id
        return
    least = reference.min_snapshots_to_keep or _number(metadata, _LEAST, 1)
    # What is kept of main by its age is for the caller to say.
    age = reference.max_snapshot_age_ms or (0 if is_main else _number(metadata, _AGE, _DEFAULT_AGE))
    oldest = time.time() * 1000 - age
    for count, snapshot in enumerate(ancestors(metadata, reference.snapshot_id)):
        if count >= max(least, 1) and snapshot.timestamp_ms < oldest:
            return
        yield snapshot.snapshot_id


def _number(metadata: TableMetadata, name: str, default: int) -> int:
    text = metadata.properties.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else default


@dataclass(frozen=True)
class NeededFiles:
    """Paths in a table's folder of files that have to stay; all have, while it is not known which ones."""

    paths: frozenset[str] = frozenset()
    is_known: bool = True

    def __contains__(self, path: object) -> bool:
        return not self.is_known or path in self.paths

    def including(self, paths: Iterable[str]) -> Self:
        """Return these files and some more."""
        return replace(self, paths=self.paths.union(paths))


class ProtectedFiles:
    """The files that snapshots need which go by other rules than those of main's line. Each snapshot is read once."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """Take the table's folder."""
        self._storage, self._folder = storage, folder
        self._by_snapshot: dict[int, frozenset[str]] = {}
        self._last: tuple[TableMetadata, NeededFiles] | None = None

    def of(self, metadata: TableMetadata) -> NeededFiles:
        """Return the files that the snapshots of some metadata need. Raises StorageError if they cannot be read now."""
        if self._last is None or self._last[0] is not metadata:
            self._last = metadata, self._read(metadata)
        return self._last[1]

    def _read(self, metadata: TableMetadata) -> NeededFiles:
        line = {snapshot.snapshot_id for snapshot in _line_of_main(metadata)} - _needed(metadata)
        line.add(metadata.current_snapshot_id or 0)
        protected = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in line]
        read = self._by_snapshot
        try:
            self._by_snapshot = {snapshot.snapshot_id: self._files_of(snapshot, read) for snapshot in protected}
        except StorageError:
            raise
        except Exception:
            # Nobody can read the snapshot as long as its manifests are damaged or elsewhere, but they may be restored.
            return NeededFiles(is_known=False)
        statistics = [*metadata.statistics, *metadata.partition_statistics]
        paths = self._paths(file.statistics_path for file in statistics)
        return NeededFiles(frozenset(paths).union(*self._by_snapshot.values()))

    def _files_of(self, snapshot: Snapshot, read: dict[int, frozenset[str]]) -> frozenset[str]:
        if snapshot.snapshot_id in read:
            return read[snapshot.snapshot_id]
        uris = [snapshot.manifest_list]
        for manifest in read_manifests(self._storage, path_of(self._storage, snapshot.manifest_list)):
            uris += [manifest.file.manifest_path, *(entry.data_file.file_path for entry in manifest.entries)]
        return frozenset(self._paths(uris))

    def _paths(self, uris: Iterable[str]) -> Iterator[str]:
        """Yield the paths in the table's folder: what is elsewhere is never deleted."""
        for uri in uris:
            try:
                path = path_of(self._storage, uri)
            except (ValueError, LogicalRepError):
                continue
            if path.startswith(f"{self._folder}/"):
                yield path.removeprefix(f"{self._folder}/")
