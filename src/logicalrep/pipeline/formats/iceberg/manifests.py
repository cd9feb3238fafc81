"""Manifests: files of an Iceberg table that list its data files and its delete files.

`manifest_writer` writes manifests. pyiceberg reads the fields of version 2; its schemas of version 3 have the other
fields. Sources: "Manifests", "First Row ID Inheritance" and "First Row ID Assignment" in the Iceberg Table Spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)
from pyiceberg.manifest import DataFile as ManifestDataFile

from logicalrep.pipeline.formats.iceberg.avro_files import check_avro
from logicalrep.pipeline.formats.iceberg.memory_files import StorageFiles
from logicalrep.pipeline.storage.storage import Storage

RECORDS: Literal[3] = 3
"""The version whose fields all records in memory have; a file of version 2 lacks some of them."""
_FIELDS = {field.name: number for number, field in enumerate(DATA_FILE_TYPE[RECORDS].fields)}

FIRST_ROW_ID = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[RECORDS].fields].index("first_row_id")

EntryKey = tuple[str, int | None]
"""The identity of an entry's file: its location, and the offset of a deletion vector in it."""


def entry_of(**values: Any) -> ManifestDataFile:
    return ManifestDataFile.from_args(RECORDS, **values)


def optional_value(file: ManifestDataFile, name: str) -> Any:
    """Return a value that pyiceberg has no attribute for."""
    return file[_FIELDS[name]]


def first_row_id(file: ManifestDataFile) -> int | None:
    value: int | None = optional_value(file, "first_row_id")
    return value


def key_of(file: ManifestDataFile) -> EntryKey:
    return file.file_path, optional_value(file, "content_offset")


def with_values(file: ManifestDataFile, **values: Any) -> ManifestDataFile:
    numbered = {_FIELDS[name]: value for name, value in values.items()}
    return ManifestDataFile(*(numbered.get(number, file[number]) for number in range(len(file))))


@dataclass(frozen=True)
class Manifest:
    file: ManifestFile
    entries: tuple[ManifestEntry, ...]
    first_row_id: int | None = None
    """The first id of the rows in files whose entries have no first id; None without row lineage."""

    @property
    def is_of_deletes(self) -> bool:
        return bool(self.file.content == ManifestContent.DELETES)

    @property
    def rows_without_id(self) -> int:
        files = (entry.data_file for entry in self.entries)
        return sum(file.record_count for file in files if first_row_id(file) is None)

    def with_row_ids(self, first: int) -> Self:
        """Return a manifest of data files whose rows have ids; readers compute the same ids from the first one."""
        next_row_id, entries = first, list[ManifestEntry]()
        for entry in self.entries:
            file = entry.data_file
            if first_row_id(file) is None:
                entry = next_entry(entry, with_values(file, first_row_id=next_row_id), entry.status)
                next_row_id += file.record_count
            entries.append(entry)
        return replace(self, entries=tuple(entries), first_row_id=first)


def with_all_row_ids(manifests: Sequence[Manifest], next_row_id: int) -> tuple[list[Manifest], int]:
    """Return manifests of which each row has an id, and the next id. `next_row_id` is the first new id."""
    numbered = []
    for manifest in manifests:
        if manifest.first_row_id is None and not manifest.is_of_deletes:
            count = manifest.rows_without_id
            manifest = manifest.with_row_ids(next_row_id)
            next_row_id += count
        numbered.append(manifest)
    return numbered, next_row_id


def next_entry(
    entry: ManifestEntry, file: ManifestDataFile, status: ManifestEntryStatus, snapshot_id: int | None = None
) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id or entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=file,
    )


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
    return [read_manifest(storage, path, file) for path, file in read_list(storage, manifest_list, data_files).items()]


def read_list(storage: Storage, manifest_list: str, data_files: int | None = None) -> dict[str, ManifestFile]:
    """Return the entries of a manifest list by the paths of the manifests. Arguments and errors as `read_manifests`."""
    files, most_bytes = StorageFiles(storage), storage.limits.json_bytes
    with storage.decoding(manifest_list):
        list_file = files.new_input(storage.location(manifest_list))
        listed_count = check_avro(list_file, most_bytes)
        with AvroFile[ManifestFile](
            list_file,
            MANIFEST_LIST_FILE_SCHEMAS[RECORDS],
            read_types={-1: ManifestFile, 508: PartitionFieldSummary},
            read_enums={517: ManifestContent},
        ) as opened:
            listed = {storage.path_of(file.manifest_path): file for file in opened}
        of_data = [file for file in listed.values() if file.content == ManifestContent.DATA]
        count = sum((file.added_files_count or 0) + (file.existing_files_count or 0) for file in of_data)
        if len(listed) != listed_count or data_files not in (None, count):
            raise ValueError("it lacks manifests, or has too many")
        return listed


def read_manifest(storage: Storage, path: str, file: ManifestFile) -> Manifest:
    """Return the manifest at a path, from its entry in a manifest list. Errors as `read_manifests`."""
    files = StorageFiles(storage)
    with storage.decoding(path):
        count = check_avro(files.new_input(file.manifest_path), storage.limits.json_bytes)
        entries = _read_entries(files, file)
        statuses = Counter(entry.status for entry in entries)
        expected = {
            ManifestEntryStatus.ADDED: file.added_files_count,
            ManifestEntryStatus.EXISTING: file.existing_files_count,
            ManifestEntryStatus.DELETED: file.deleted_files_count,
        }
        if len(entries) != count or any(number not in (None, statuses[status]) for status, number in expected.items()):
            raise ValueError("it lacks entries, or has too many")
        live_entries = tuple(entry for entry in entries if entry.status != ManifestEntryStatus.DELETED)
        manifest, first_id = Manifest(file, live_entries), file[FIRST_ROW_ID]
        return manifest if first_id is None else manifest.with_row_ids(first_id)


def _read_entries(files: StorageFiles, file: ManifestFile) -> list[ManifestEntry]:
    """Return the entries of a manifest, with the values that they inherit from the manifest."""
    with AvroFile[ManifestEntry](
        files.new_input(file.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[RECORDS],
        read_types={-1: ManifestEntry, 2: ManifestDataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as opened:
        entries = list(opened)
    for entry in entries:
        if entry.snapshot_id is None and file.added_snapshot_id is not None:
            entry.snapshot_id = file.added_snapshot_id
        if entry.sequence_number is None and entry.status == ManifestEntryStatus.ADDED:
            entry.sequence_number = file.sequence_number
        if entry.file_sequence_number is None and entry.status == ManifestEntryStatus.ADDED:
            entry.file_sequence_number = file.sequence_number
    return entries
