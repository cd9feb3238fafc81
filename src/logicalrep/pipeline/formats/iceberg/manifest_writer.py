"""The writer of a snapshot's manifests.

A commit rewrites the manifests of removed files with the remaining entries, and does not change other manifests. It
merges small manifests, so that a reader opens a table by few reads, and no commit rewrites all entries.

pyiceberg writes manifests of version 2; its schemas of version 3 have the other fields. Source: "Manifests" in the
Iceberg Table Spec.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io import OutputFile
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
)
from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record, TableVersion

from logicalrep.pipeline.formats.iceberg.bounds import to_bounds
from logicalrep.pipeline.formats.iceberg.manifests import (
    FIRST_ROW_ID,
    RECORDS,
    EntryKey,
    Manifest,
    entry_of,
    key_of,
    next_entry,
    with_values,
)
from logicalrep.pipeline.formats.iceberg.memory_files import FileToMemory
from logicalrep.pipeline.formats.iceberg.metadata import SnapshotNumbers
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, is_own_name
from logicalrep.pipeline.storage.storage import Storage

_CODEC: Literal["deflate"] = "deflate"


def manifest_data_file(storage: Storage, folder: str, table: TableSpec, file: DataFile) -> ManifestDataFile:
    return entry_of(
        content=DataFileContent.DATA,
        file_path=storage.location(f"{folder}/{file.path}"),
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        **to_bounds(table.stored, file.rows, file.statistics),
    )


def _with_nulls(file: ManifestDataFile, columns: Collection[int]) -> ManifestDataFile:
    """Return a file with the counts of columns that it lacks, which are NULL in all rows."""
    if not columns or not is_own_name(file.file_path):
        return file
    counts = dict.fromkeys(columns, file.record_count)
    return with_values(
        file,
        value_counts=counts | dict(file.value_counts or {}),
        null_value_counts=counts | dict(file.null_value_counts or {}),
    )


class _FileWriter(ManifestWriterV2):
    """The writer of a manifest, of both versions and kinds."""

    def __init__(
        self,
        spec: PartitionSpec,
        schema: Schema,
        file: OutputFile,
        snapshot_id: int,
        content: ManifestContent,
        version: TableVersion,
    ) -> None:
        super().__init__(spec, schema, file, snapshot_id, _CODEC)
        self._content, self._version = content, version

    def content(self) -> ManifestContent:
        return self._content

    @property
    def version(self) -> TableVersion:
        return self._version

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": self._content.name.lower()}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=self._with_partition(self.version),
            record_schema=self._with_partition(RECORDS),
            schema_name="manifest_entry",
            metadata=self._meta,
        )


class _ListWriter(ManifestListWriterV2):
    """The writer of a manifest list of both versions."""

    def __init__(
        self, file: OutputFile, snapshot_id: int, parent: int | None, sequence_number: int, version: TableVersion
    ) -> None:
        super().__init__(file, snapshot_id, parent, sequence_number, _CODEC)
        self._format_version, self._meta = version, {**self._meta, "format-version": str(version)}

    def __enter__(self) -> Self:
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            record_schema=MANIFEST_LIST_FILE_SCHEMAS[RECORDS],
            file_schema=MANIFEST_LIST_FILE_SCHEMAS[self._format_version],
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self


@dataclass(frozen=True)
class ManifestWriter:
    """The writer of a new snapshot's manifests, which are durable when a method returns."""

    storage: Storage
    folder: str
    """The table's folder."""
    metadata: TableMetadata
    """The table's metadata with the schema and the partition spec of the new files."""
    numbers: SnapshotNumbers
    """The numbers of the new snapshot, whose row ids the writer does not need."""
    new_columns: frozenset[int] = frozenset()
    """The field ids of the columns that the table did not have before this snapshot."""
    merges_manifests: bool = True
    """Whether a snapshot merges small manifests of earlier snapshots."""

    @property
    def spec_id(self) -> int:
        """The number of the new files' partition spec; manifests of other specs are not merged with their manifests."""
        return self.metadata.default_spec_id

    @property
    def has_row_lineage(self) -> bool:
        return self.metadata.format_version >= RECORDS

    def write_changes(
        self,
        manifests: Sequence[Manifest],
        added: Sequence[ManifestDataFile],
        removed: Collection[EntryKey],
        *,
        of_deletes: bool,
    ) -> list[Manifest]:
        """Write the new manifests of one kind for added and removed files; return all manifests of this kind.

        Args:
            manifests: the current manifests of this kind.
            added: the new files.
            removed: the keys of the removed entries.
            of_deletes: whether the manifests list delete files.
        """
        has_counts = not of_deletes and bool(self.new_columns)
        touched = [
            manifest
            for manifest in manifests
            if has_counts or any(key_of(entry.data_file) in removed for entry in manifest.entries)
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
            of_spec += [self._existing_entry(entry, removed) for entry in manifest.entries]
        entries.setdefault(self.spec_id, []).extend(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=self.numbers.snapshot_id, data_file=file
            )
            for file in added
        )
        written = [
            self._write(of_spec[start : start + most_entries], self.metadata.specs()[spec_id], of_deletes)
            for spec_id, of_spec in entries.items()
            for start in range(0, len(of_spec), most_entries)
        ]
        return [*stay, *written]

    def _existing_entry(self, entry: ManifestEntry, removed: Collection[EntryKey]) -> ManifestEntry:
        file = _with_nulls(entry.data_file, self.new_columns)
        if key_of(file) in removed:
            return next_entry(entry, file, ManifestEntryStatus.DELETED, self.numbers.snapshot_id)
        return next_entry(entry, file, ManifestEntryStatus.EXISTING)

    def _write(self, entries: Sequence[ManifestEntry], spec: PartitionSpec, of_deletes: bool) -> Manifest:
        path = self._path(f"{uuid.uuid4()}-m.avro")
        written = FileToMemory(self.storage.location(path))
        content = ManifestContent.DELETES if of_deletes else ManifestContent.DATA
        version = self.metadata.format_version
        with _FileWriter(spec, self._schema_of(spec), written, self.numbers.snapshot_id, content, version) as writer:
            # Some readers count rows of removed files among the rows without ids.
            for entry in sorted(entries, key=lambda entry: entry.status == ManifestEntryStatus.DELETED):
                writer.add_entry(entry)
        self.storage.write(path, written.data)
        live_entries = [entry for entry in entries if entry.status != ManifestEntryStatus.DELETED]
        for entry in live_entries:
            if entry.status == ManifestEntryStatus.ADDED:
                # A new entry has the sequence number of its manifest, which readers apply in the same way.
                entry.sequence_number = entry.file_sequence_number = self.numbers.sequence_number
        file = writer.to_manifest_file()
        file.sequence_number = self.numbers.sequence_number
        file.min_sequence_number = min(
            (entry.sequence_number or 0 for entry in live_entries), default=self.numbers.sequence_number
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
        path = self._path(f"snap-{self.numbers.snapshot_id}-{uuid.uuid4()}.avro")
        written = FileToMemory(self.storage.location(path))
        version = self.metadata.format_version
        with _ListWriter(written, self.numbers.snapshot_id, parent, self.numbers.sequence_number, version) as writer:
            if manifests:
                writer.add_manifests([_listed(manifest) for manifest in manifests])
        self.storage.write(path, written.data)
        return path


def _listed(manifest: Manifest) -> ManifestFile:
    file = manifest.file
    return ManifestFile(*(file[number] for number in range(FIRST_ROW_ID)), manifest.first_row_id)
