"""Manifests: files of an Iceberg table that list its data files and its delete files.

A commit rewrites the manifests of removed files with the remaining entries, and does not change other manifests. It
merges small manifests, so that a reader opens a table by few reads, and no commit rewrites all entries. Source:
"Manifests" in the Iceberg Table Spec.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal

from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
    read_manifest_list,
)
from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from logicalrep.pipeline.formats.iceberg.avro_files import check_avro
from logicalrep.pipeline.formats.iceberg.bounds import to_bounds
from logicalrep.pipeline.formats.iceberg.memory_files import FileToMemory, StorageFiles
from logicalrep.pipeline.formats.iceberg.metadata import next_sequence_number
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, is_own_name
from logicalrep.pipeline.storage.storage import Storage

_CODEC: Literal["deflate"] = "deflate"
_VALUE_COUNTS, _NULL_COUNTS = (
    [field.name for field in DATA_FILE_TYPE[2].fields].index(name) for name in ("value_counts", "null_value_counts")
)


@dataclass(frozen=True)
class Manifest:
    file: ManifestFile
    entries: tuple[ManifestEntry, ...]

    @property
    def is_of_deletes(self) -> bool:
        return bool(self.file.content == ManifestContent.DELETES)


def read_manifests(storage: Storage, manifest_list: str | None, data_files: int | None = None) -> list[Manifest]:
    """Return the manifests in a manifest list; no manifests for None.

    Args:
        storage: the destination.
        manifest_list: the path of the list.
        data_files: the number of data files in all manifests; None if it is unknown.

    Raises:
        MalformedFileError: a manifest or the list is damaged.
        DamagedError: a manifest or the list is missing.
        StorageError: a manifest or the list cannot be read now.
    """
    if manifest_list is None:
        return []
    files, most_bytes = StorageFiles(storage), storage.limits.json_bytes
    with storage.decoding(manifest_list):
        list_file = files.new_input(storage.location(manifest_list))
        listed_count = check_avro(list_file, most_bytes)
        listed = list(read_manifest_list(list_file))
        of_data = [file for file in listed if file.content == ManifestContent.DATA]
        count = sum((file.added_files_count or 0) + (file.existing_files_count or 0) for file in of_data)
        if len(listed) != listed_count or data_files not in (None, count):
            raise ValueError("it lacks manifests, or has too many")
        paths = [storage.path_of(file.manifest_path) for file in listed]
    return [_read_manifest(storage, file, path) for file, path in zip(listed, paths, strict=True)]


def _read_manifest(storage: Storage, file: ManifestFile, path: str) -> Manifest:
    files = StorageFiles(storage)
    with storage.decoding(path):
        count = check_avro(files.new_input(file.manifest_path), storage.limits.json_bytes)
        entries = file.fetch_manifest_entry(files, discard_deleted=False)
        statuses = Counter(entry.status for entry in entries)
        expected = {
            ManifestEntryStatus.ADDED: file.added_files_count,
            ManifestEntryStatus.EXISTING: file.existing_files_count,
            ManifestEntryStatus.DELETED: file.deleted_files_count,
        }
        if len(entries) != count or any(number not in (None, statuses[status]) for status, number in expected.items()):
            raise ValueError("it lacks entries, or has too many")
        return Manifest(file, tuple(entry for entry in entries if entry.status != ManifestEntryStatus.DELETED))


def manifest_data_file(
    storage: Storage, folder: str, table: TableSpec, file: DataFile, spec_id: int
) -> ManifestDataFile:
    return ManifestDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=storage.location(f"{folder}/{file.path}"),
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        spec_id=spec_id,
        **to_bounds(table.stored, file.rows, file.statistics),
    )


def _with_nulls(file: ManifestDataFile, columns: Collection[int]) -> ManifestDataFile:
    """Return a file with the counts of columns that it lacks, which are NULL in all rows."""
    if not columns or not is_own_name(file.file_path):
        return file
    counted, counts = copy(file), dict.fromkeys(columns, file.record_count)
    counted[_VALUE_COUNTS], counted[_NULL_COUNTS] = (
        counts | dict(file_counts or {}) for file_counts in (file.value_counts, file.null_value_counts)
    )
    return counted


class _DeleteManifestWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


@dataclass(frozen=True)
class ManifestWriter:
    """The writer of a new snapshot's manifests, which are durable when a method returns."""

    storage: Storage
    folder: str
    """The table's folder."""
    metadata: TableMetadata
    """The table's metadata with the schema and the partition spec of the new files."""
    snapshot_id: int
    new_columns: frozenset[int] = frozenset()
    """The field ids of the columns that the table did not have before this snapshot."""
    merges_manifests: bool = True
    """Whether a snapshot merges small manifests of earlier snapshots."""

    @property
    def spec_id(self) -> int:
        """The number of the new files' partition spec; manifests of other specs are not merged with their manifests."""
        return self.metadata.default_spec_id

    @property
    def sequence_number(self) -> int:
        return next_sequence_number(self.metadata)

    def write_changes(
        self,
        manifests: Sequence[Manifest],
        added: Sequence[ManifestDataFile],
        removed: Collection[str],
        *,
        of_deletes: bool,
    ) -> list[Manifest]:
        """Write the new manifests of one kind for added and removed files; return all manifests of this kind.

        Args:
            manifests: the current manifests of this kind.
            added: the new files.
            removed: the locations of the removed files.
            of_deletes: whether the manifests list delete files.
        """
        has_counts = not of_deletes and bool(self.new_columns)
        touched = [
            manifest
            for manifest in manifests
            if has_counts or any(entry.data_file.file_path in removed for entry in manifest.entries)
        ]
        # A manifest of removed files alone belongs to the snapshot that removed them.
        stay = [manifest for manifest in manifests if manifest.entries and manifest not in touched]
        if not touched and not added:
            return stay
        limits = self.storage.limits
        most_entries = limits.manifest_entries
        small = [
            manifest
            for manifest in stay
            if len(manifest.entries) < most_entries and manifest.file.partition_spec_id == self.spec_id
        ]
        if self.merges_manifests and len(small) >= limits.small_manifests:
            touched, stay = [*touched, *small], [manifest for manifest in stay if manifest not in small]
        entries: dict[int, list[ManifestEntry]] = {}
        for manifest in touched:
            of_spec = entries.setdefault(manifest.file.partition_spec_id, [])
            of_spec += [self._next_entry(entry, removed) for entry in manifest.entries]
        entries.setdefault(self.spec_id, []).extend(
            ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=file)
            for file in added
        )
        written = [
            self._write(of_spec[start : start + most_entries], self.metadata.specs()[spec_id], of_deletes)
            for spec_id, of_spec in entries.items()
            for start in range(0, len(of_spec), most_entries)
        ]
        return [*stay, *written]

    def _next_entry(self, entry: ManifestEntry, removed: Collection[str]) -> ManifestEntry:
        is_removed = entry.data_file.file_path in removed
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if is_removed else ManifestEntryStatus.EXISTING,
            snapshot_id=self.snapshot_id if is_removed else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=_with_nulls(entry.data_file, self.new_columns),
        )

    def _write(self, entries: Sequence[ManifestEntry], spec: PartitionSpec, of_deletes: bool) -> Manifest:
        path = self._path(f"{uuid.uuid4()}-m.avro")
        written, kind = (
            FileToMemory(self.storage.location(path)),
            _DeleteManifestWriter if of_deletes else ManifestWriterV2,
        )
        with kind(spec, self._schema_of(spec), written, self.snapshot_id, _CODEC) as writer:
            for entry in entries:
                writer.add_entry(entry)
        self.storage.write(path, written.data)
        live_entries = [entry for entry in entries if entry.status != ManifestEntryStatus.DELETED]
        for entry in live_entries:
            if entry.status == ManifestEntryStatus.ADDED:
                # A new entry has the sequence number of its manifest, which readers apply in the same way.
                entry.sequence_number = entry.file_sequence_number = self.sequence_number
        file = writer.to_manifest_file()
        file.sequence_number = self.sequence_number
        file.min_sequence_number = min(
            (entry.sequence_number or 0 for entry in live_entries), default=self.sequence_number
        )
        return Manifest(file, tuple(live_entries))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{self.storage.layout(self.folder).of_metadata(name)}"

    def _schema_of(self, spec: PartitionSpec) -> Schema:
        """Return the last schema that has the columns of a spec: the current schema may lack a dropped column."""
        sources = {field.source_id for field in spec.fields}
        schemas = (self.metadata.schema(), *reversed(self.metadata.schemas))
        return next(schema for schema in schemas if sources <= schema.field_ids)

    def write_list(self, manifests: Sequence[Manifest], parent: int | None) -> str:
        """Write the snapshot's manifest list; return the path at the destination."""
        path = self._path(f"snap-{self.snapshot_id}-{uuid.uuid4()}.avro")
        written = FileToMemory(self.storage.location(path))
        with ManifestListWriterV2(written, self.snapshot_id, parent, self.sequence_number, _CODEC) as writer:
            if manifests:
                writer.add_manifests([manifest.file for manifest in manifests])
        self.storage.write(path, written.data)
        return path
