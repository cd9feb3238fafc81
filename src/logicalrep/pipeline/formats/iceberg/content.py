"""The content of an Iceberg table's version: its manifests, and the files that the manifests list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import ManifestEntry
from pyiceberg.table.metadata import TableMetadata

from logicalrep.pipeline.formats.iceberg.bounds import from_bounds
from logicalrep.pipeline.formats.iceberg.deletes.positions import read_deletes, write_deletes
from logicalrep.pipeline.formats.iceberg.deletes.vectors import is_vector, read_vectors, write_vectors
from logicalrep.pipeline.formats.iceberg.manifest_writer import ManifestWriter, manifest_data_file
from logicalrep.pipeline.formats.iceberg.manifests import (
    EntryKey,
    Manifest,
    first_row_id,
    key_of,
    read_manifests,
    with_all_row_ids,
)
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, is_own_name
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.row_lineage import RowLineage
from logicalrep.pipeline.storage.storage import Storage


@dataclass(frozen=True)
class Content:
    manifests: list[Manifest] = field(default_factory=list)
    files: dict[str, DataFile] = field(default_factory=dict)
    """The data files, with their deleted rows as vectors."""
    sources: dict[str, frozenset[EntryKey]] = field(default_factory=dict)
    """The keys of the entries with the deleted rows of each data file, by the path of the data file."""

    @classmethod
    def read(
        cls, storage: Storage, folder: str, manifest_list: str | None, table: TableSpec, data_files: int | None = None
    ) -> Content:
        """Return the content of the manifests in a manifest list; an empty content for None.

        Args:
            storage: the destination.
            folder: the table's folder.
            manifest_list: the path of the list.
            table: the description of the table.
            data_files: the number of data files; None if it is unknown.

        Raises:
            MalformedFileError: a manifest is damaged, has unsupported deletes, or has files outside of the folder.
            DamagedError: a file is missing.
            StorageError: a file cannot be read now.
        """
        manifests = read_manifests(storage, manifest_list, data_files)
        with storage.decoding(manifest_list or folder):
            return cls.of(storage, folder, manifests, table)

    @classmethod
    def of(cls, storage: Storage, folder: str, manifests: list[Manifest], table: TableSpec) -> Content:
        entries = [entry for manifest in manifests if not manifest.is_of_deletes for entry in manifest.entries]
        delete_entries = [entry for manifest in manifests if manifest.is_of_deletes for entry in manifest.entries]
        by_path = {storage.path_of(entry.data_file.file_path): entry for entry in entries}
        vectors: dict[str, tuple[DeletionVector, ManifestDataFile]] = {}
        if table.settings.has_row_lineage:
            entries_of_vectors = [entry for entry in delete_entries if is_vector(entry.data_file)]
            delete_entries = [entry for entry in delete_entries if not is_vector(entry.data_file)]
            vectors = read_vectors(storage, folder, entries_of_vectors, by_path)
        # A vector has all rows of earlier position deletes.
        without_vector = {path: entry for path, entry in by_path.items() if path not in vectors}
        deleted = read_deletes(storage, delete_entries, without_vector)
        files, sources, start = {}, {}, f"{folder}/"
        for path, entry in by_path.items():
            if not path.startswith(start):
                raise ValueError(f"{path} is outside of the table's folder")
            name, vector = path.removeprefix(start), None
            if path in vectors:
                vector, vector_file = vectors[path]
                sources[name] = frozenset((key_of(vector_file),))
            elif path in deleted:
                vector, sources[name] = DeletionVector.of(deleted[path].rows), deleted[path].sources
            files[name] = _data_file(name, entry, table, vector)
        return cls(manifests, files, sources)

    def sizes(self, storage: Storage, folder: str, metadata: TableMetadata | None) -> dict[str, int]:
        """Return the sizes in bytes of all files that a version with this metadata needs, by path."""
        start = f"{folder}/"
        sizes = {path: file.size for path, file in self.files.items()}
        for manifest in self.manifests:
            sizes[storage.path_of(manifest.file.manifest_path).removeprefix(start)] = manifest.file.manifest_length
            for entry in manifest.entries if manifest.is_of_deletes else ():
                file = entry.data_file
                sizes[storage.path_of(file.file_path).removeprefix(start)] = file.file_size_in_bytes
        snapshot = None if metadata is None else metadata.current_snapshot()
        if snapshot is not None:
            sizes[storage.path_of(snapshot.manifest_list).removeprefix(start)] = 0
        return sizes

    def write_changes(
        self,
        writer: ManifestWriter,
        table: TableSpec,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        next_row_id: int,
    ) -> tuple[Content, int]:
        """Write the new manifests and delete files for added and removed files.

        Return the resulting content, and the next row id: a table with row lineage gives ids to all rows without one,
        from `next_row_id` on. An added file whose path the content has already has another vector, or other bounds. The
        manifests keep the old bounds.
        """
        storage, folder = writer.storage, writer.folder
        removed_paths = {file.path for file in removed} - {file.path for file in added}
        files = {path: file for path, file in self.files.items() if path not in removed_paths}
        new = [file for file in added if file.path not in self.files]
        # A file of the table keeps its lineage.
        added = [replace(file, lineage=self.files.get(file.path, file).lineage) for file in added]
        marked = [file for file in added if file.vector is not None and not file.is_same(self.files.get(file.path))]
        files |= {file.path: file for file in added}
        sources = {
            path: keys for path, keys in self.sources.items() if path in files and files[path].vector is not None
        }
        deletes = []
        for marked_files, delete_file in _write_marks(writer, marked):
            deletes.append(delete_file)
            files |= {file.path: file for file in marked_files}
            sources |= {file.path: frozenset((key_of(delete_file),)) for file in marked_files}
        needed = {key for keys in sources.values() for key in keys}
        data = [manifest for manifest in self.manifests if not manifest.is_of_deletes]
        of_deletes = [manifest for manifest in self.manifests if manifest.is_of_deletes]
        surplus = {key_of(entry.data_file) for manifest in of_deletes for entry in manifest.entries} - needed
        described = [manifest_data_file(storage, folder, table, file) for file in new]
        names = {(storage.location(f"{folder}/{path}"), None) for path in removed_paths}
        data = writer.write_changes(data, described, names, of_deletes=False)
        if writer.has_row_lineage:
            without_ids = [manifest.first_row_id is None for manifest in data]
            data, next_row_id = with_all_row_ids(data, next_row_id)
            for manifest in compress(data, without_ids):
                for entry in manifest.entries:
                    path = storage.path_of(entry.data_file.file_path).removeprefix(f"{folder}/")
                    files[path] = replace(files[path], lineage=_lineage(entry))
        of_deletes = writer.write_changes(of_deletes, deletes, surplus, of_deletes=True)
        return Content([*data, *of_deletes], files, sources), next_row_id


def _write_marks(
    writer: ManifestWriter, marked: Sequence[DataFile]
) -> Iterator[tuple[Sequence[DataFile], ManifestDataFile]]:
    """Write the vectors of files; yield the files that share a delete file's entry, and the delete file."""
    storage, folder = writer.storage, writer.folder
    if writer.has_row_lineage:
        if marked:
            yield from (([file], entry) for file, entry in write_vectors(storage, folder, marked))
        return
    # A file of position deletes belongs to one partition, as data files do.
    by_partition: dict[object, list[DataFile]] = {}
    for file in marked:
        by_partition.setdefault(file.partition, []).append(file)
    for of_partition in by_partition.values():
        yield of_partition, write_deletes(storage, folder, of_partition)


def _lineage(entry: ManifestEntry) -> RowLineage | None:
    first = first_row_id(entry.data_file)
    return None if first is None else RowLineage(first, entry.sequence_number or 0)


def _data_file(path: str, entry: ManifestEntry, table: TableSpec, vector: DeletionVector | None) -> DataFile:
    file = entry.data_file
    statistics = from_bounds(
        table.stored,
        file.record_count,
        file.lower_bounds,
        file.upper_bounds,
        file.null_value_counts,
        is_own=is_own_name(path),
    )
    values = tuple(file.partition[number] for number in range(len(table.partitions)))
    return DataFile(
        path, file.file_size_in_bytes, file.record_count, statistics, vector, values, lineage=_lineage(entry)
    )
