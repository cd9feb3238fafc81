"""The retention of a table's snapshots and their files, with respect to branches and tags of other programs.

replicate writes the snapshots of main's line, and removes each of them some time after the next snapshot. A branch or a
tag needs snapshots of main's line, or has snapshots of its own; replicate removes no snapshot that a branch or a tag
needs, and no file of a remaining snapshot. Source: "Snapshot Retention Policy" in the Iceberg Table Spec.
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

from logicalrep.pipeline.formats.iceberg.manifests import read_list, read_manifest, read_manifests
from logicalrep.pipeline.formats.iceberg.metadata import SNAPSHOT, WRITER
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep_runtime.errors import LogicalRepError

_LEAST, _AGE = "history.expire.min-snapshots-to-keep", "history.expire.max-snapshot-age-ms"
_DEFAULT_AGE = 5 * 24 * 3_600_000


def expired_snapshots(metadata: TableMetadata, until: float | None, keep_hours: float | None, most: int) -> set[int]:
    """Return the ids of the snapshots that the next commit removes.

    Args:
        metadata: the metadata of the last version.
        until: a time in seconds since 1970, to remove the snapshots superseded up to it; None to remove the snapshots
            that are too old or too many.
        keep_hours: the hours for which snapshots stay; None while they are unknown.
        most: the number of main's snapshots from which every second snapshot of the older half is removed.
    """
    if until is not None:
        return superseded(metadata, until * 1000)
    expired = surplus_snapshots(metadata, most)
    if keep_hours is not None:
        oldest = (time.time() - keep_hours * 3600) * 1000
        expired |= superseded(metadata, oldest) | abandoned(metadata, oldest)
    return expired


def superseded(metadata: TableMetadata, before_ms: float) -> set[int]:
    """Return main's unneeded snapshots whose successor is not later than a time, in milliseconds since 1970."""
    line = pairwise(_line_of_main(metadata))
    return {snapshot.snapshot_id for snapshot, successor in line if successor.timestamp_ms <= before_ms} - _needed(
        metadata
    )


def abandoned(metadata: TableMetadata, before_ms: float) -> set[int]:
    """Return the snapshots up to a time, in milliseconds since 1970, that main, branches and tags do not need."""
    line = {snapshot.snapshot_id for snapshot in _line_of_main(metadata)}
    old = {snapshot.snapshot_id for snapshot in metadata.snapshots if snapshot.timestamp_ms <= before_ms}
    return old - line - _needed(metadata)


def surplus_snapshots(metadata: TableMetadata, most: int) -> set[int]:
    """Return every second snapshot of main's older half if main has `most` snapshots or more."""
    line, needed = _line_of_main(metadata), _needed(metadata)
    older = [snapshot.snapshot_id for snapshot in line[: len(line) // 2] if snapshot.snapshot_id not in needed]
    return set(older[1::2]) if len(line) >= most else set()


def expiry(metadata: TableMetadata, snapshot_ids: Collection[int]) -> list[TableUpdate]:
    """Return the updates that remove snapshots and their statistics. Raises ValueError if a reference needs one."""
    if not snapshot_ids:
        return []
    if needed := _needed(metadata).intersection(snapshot_ids):
        raise ValueError(f"main, a branch or a tag needs the snapshots {needed}")
    statistics = [file.snapshot_id for file in metadata.partition_statistics if file.snapshot_id in snapshot_ids]
    values: dict[str, Any] = {"snapshot-ids": sorted(snapshot_ids)}
    return [
        *(RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": id_}) for id_ in statistics),
        RemoveSnapshotsUpdate(**values),
    ]


def _line_of_main(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots that once were main's last snapshot, in order.

    The removal of a snapshot interrupts the line of parents, and catalogs forget earlier entries of the log. So all
    snapshots that replicate wrote count too: they are all main's.
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
    """Yield a snapshot and its existing ancestors, once each: a damaged file may have a cycle."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while snapshot_id is not None and (snapshot := by_id.pop(snapshot_id, None)) is not None:
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def _needed(metadata: TableMetadata) -> set[int]:
    needed: set[int | None] = {metadata.current_snapshot_id, *_unconfirmed(metadata)}
    for name, reference in metadata.refs.items():
        needed |= set(_needed_by(metadata, reference, is_main=name == MAIN_BRANCH))
    return {snapshot_id for snapshot_id in needed if snapshot_id is not None}


def _unconfirmed(metadata: TableMetadata) -> Iterator[int]:
    """Yield the snapshots of other programs after replicate's last snapshot, and this snapshot.

    In a catalog they prove that the other programs left the rows unchanged.
    """
    if SNAPSHOT in metadata.properties:
        for snapshot in ancestors(metadata, metadata.current_snapshot_id):
            yield snapshot.snapshot_id
            if snapshot.summary is not None and WRITER in snapshot.summary.additional_properties:
                return


def _needed_by(metadata: TableMetadata, reference: SnapshotRef, *, is_main: bool) -> Iterator[int]:
    if reference.snapshot_ref_type == SnapshotRefType.TAG:
        yield reference.snapshot_id
        return
    least = reference.min_snapshots_to_keep or _number(metadata, _LEAST, 1)
    # The caller decides how long main's snapshots stay.
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
    """The paths within a table's folder of files that have to stay: all files while they are unknown."""

    paths: frozenset[str] = frozenset()
    is_known: bool = True

    def __contains__(self, path: object) -> bool:
        return not self.is_known or path in self.paths

    def including(self, paths: Iterable[str]) -> Self:
        return replace(self, paths=self.paths.union(paths))


def files_of_snapshots(storage: Storage, metadata: TableMetadata) -> NeededFiles:
    """Return the manifests, manifest lists, data files and delete files of all snapshots, by their paths.

    All files count as needed if a manifest is damaged, missing or elsewhere. Raises StorageError if a manifest cannot
    be read now.
    """
    paths: set[str] = set()
    try:
        for snapshot in metadata.snapshots:
            manifest_list = storage.path_of(snapshot.manifest_list)
            paths.add(manifest_list)
            # Most manifests belong to many snapshots.
            for path, file in read_list(storage, manifest_list).items():
                if path not in paths:
                    paths.add(path)
                    entries = read_manifest(storage, path, file).entries
                    paths.update(storage.path_of(entry.data_file.file_path) for entry in entries)
    except StorageError:
        raise
    except Exception:
        return NeededFiles(is_known=False)
    return NeededFiles(frozenset(paths))


class ProtectedFiles:
    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage, self._folder = storage, folder
        self._by_snapshot: dict[int, frozenset[str]] = {}
        self._last: tuple[TableMetadata, NeededFiles] | None = None

    def of(self, metadata: TableMetadata) -> NeededFiles:
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
            # No reader can read a snapshot whose manifests are damaged or elsewhere, but they may be restored.
            return NeededFiles(is_known=False)
        statistics = [*metadata.statistics, *metadata.partition_statistics]
        paths = self._paths(file.statistics_path for file in statistics)
        return NeededFiles(frozenset(paths).union(*self._by_snapshot.values()))

    def _files_of(self, snapshot: Snapshot, read: dict[int, frozenset[str]]) -> frozenset[str]:
        if snapshot.snapshot_id in read:
            return read[snapshot.snapshot_id]
        uris = [snapshot.manifest_list]
        for manifest in read_manifests(self._storage, self._storage.path_of(snapshot.manifest_list)):
            uris += [manifest.file.manifest_path, *(entry.data_file.file_path for entry in manifest.entries)]
        return frozenset(self._paths(uris))

    def _paths(self, uris: Iterable[str]) -> Iterator[str]:
        """Yield the paths within the table's folder: replicate never deletes files elsewhere."""
        for uri in uris:
            try:
                path = self._storage.path_of(uri)
            except (ValueError, LogicalRepError):
                continue
            if path.startswith(f"{self._folder}/"):
                yield path.removeprefix(f"{self._folder}/")
