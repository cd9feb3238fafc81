"""The content of an Iceberg table's version: its manifests, and the files that the manifests list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.table.metadata import TableMetadata

from logicalrep.pipeline.formats.iceberg.bounds import from_bounds
from logicalrep.pipeline.formats.iceberg.manifests import (
    Manifest,
    ManifestWriter,
    manifest_data_file,
    read_manifests,
)
from logicalrep.pipeline.formats.iceberg.position_deletes import read_deletes, write_deletes
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, is_own_name
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.storage import Storage


@dataclass(frozen=True)
class Content:
    manifests: list[Manifest] = field(default_factory=list)
    files: dict[str, DataFile] = field(default_factory=dict)
    """The data files, with their deleted rows as vectors."""
    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    """The delete files with the deleted rows of each data file, by the path of the data file."""

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
        deleted = read_deletes(storage, delete_entries, by_path)
        files, sources, start = {}, {}, f"{folder}/"
        for path, entry in by_path.items():
            if not path.startswith(start):
                raise ValueError(f"{path} is outside of the table's folder")
            name, file_deletes = path.removeprefix(start), deleted.get(path)
            vector = None if file_deletes is None else DeletionVector.of(file_deletes.rows)
            files[name] = _data_file(name, entry.data_file, table, vector)
            if file_deletes is not None:
                sources[name] = frozenset(source.removeprefix(start) for source in file_deletes.sources)
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
        folder: str,
        table: TableSpec,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
    ) -> Content:
        """Write the new manifests and delete files for added and removed files; return the resulting content.

        An added file whose path the content has already has another vector, or other bounds. The manifests keep the old
        bounds.
        """
        storage = writer.storage
        removed_paths = {file.path for file in removed} - {file.path for file in added}
        files = {path: file for path, file in self.files.items() if path not in removed_paths}
        new = [file for file in added if file.path not in self.files]
        marked = [file for file in added if file.vector is not None and not file.is_same(self.files.get(file.path))]
        files |= {file.path: file for file in added}
        sources = {
            path: paths for path, paths in self.sources.items() if path in files and files[path].vector is not None
        }
        # A delete file belongs to one partition, as data files do.
        by_partition: dict[object, list[DataFile]] = {}
        for file in marked:
            by_partition.setdefault(file.partition, []).append(file)
        deletes = []
        for of_partition in by_partition.values():
            deletes.append(write_deletes(storage, folder, of_partition, writer.spec_id))
            source = frozenset((storage.path_of(deletes[-1].file_path).removeprefix(f"{folder}/"),))
            sources |= {file.path: source for file in of_partition}
        needed = {storage.location(f"{folder}/{path}") for paths in sources.values() for path in paths}
        data = [manifest for manifest in self.manifests if not manifest.is_of_deletes]
        of_deletes = [manifest for manifest in self.manifests if manifest.is_of_deletes]
        surplus = {entry.data_file.file_path for manifest in of_deletes for entry in manifest.entries} - needed
        described = [manifest_data_file(storage, folder, table, file, writer.spec_id) for file in new]
        names = {storage.location(f"{folder}/{path}") for path in removed_paths}
        manifests = [
            *writer.write_changes(data, described, names, of_deletes=False),
            *writer.write_changes(of_deletes, deletes, surplus, of_deletes=True),
        ]
        return Content(manifests, files, sources)


def _data_file(path: str, file: ManifestDataFile, table: TableSpec, vector: DeletionVector | None) -> DataFile:
    statistics = from_bounds(
        table.stored,
        file.record_count,
        file.lower_bounds,
        file.upper_bounds,
        file.null_value_counts,
        is_own=is_own_name(path),
    )
    values = tuple(file.partition[number] for number in range(len(table.partitions)))
    return DataFile(path, file.file_size_in_bytes, file.record_count, statistics, vector, values)
