"""The Iceberg tables of a destination, by folder, with or without a catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.catalog_versions import CatalogVersions
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import ask, connect
from logicalrep.pipeline.formats.iceberg.catalogs.owned_versions import DESTINATION, FOLDER, OwnedVersions
from logicalrep.pipeline.formats.iceberg.folder_versions import FolderVersions
from logicalrep.pipeline.formats.iceberg.iceberg_table import IcebergTable
from logicalrep.pipeline.formats.iceberg.memory_files import StorageFiles
from logicalrep.pipeline.formats.iceberg.metadata import TABLE
from logicalrep.pipeline.formats.iceberg.old_versions import VERSIONS_FILE
from logicalrep.pipeline.formats.iceberg.versions import MetadataVersions
from logicalrep.pipeline.formats.removed_files import REMOVED_FILE
from logicalrep.pipeline.formats.stored_table import ForeignTableError, NewTable, StoredTable, TableFormat
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.placed import PlacedStorage
from logicalrep.pipeline.storage.storage import Storage

_METADATA = re.compile(r"(.+)/metadata/[^/]*\.metadata\.json")
_OWN_FILE = re.compile(rf"([^/]+/[^/]+)/({re.escape(REMOVED_FILE)}|{re.escape(VERSIONS_FILE)})")


@dataclass(frozen=True)
class IcebergTables(TableFormat):
    """The Iceberg tables of a destination. Use `in_folders` or `in_catalog` to create an instance."""

    storage: Storage
    versions: Callable[[str], MetadataVersions]
    """Returns the metadata versions of the table in a folder."""

    @classmethod
    def in_folders(cls, storage: Storage) -> IcebergTables:
        return cls(storage, partial(FolderVersions, storage))

    @classmethod
    def in_catalog(cls, storage: Storage, settings: CatalogSettings, *, creates: bool = False) -> IcebergTables:
        """Return the tables of a destination in a catalog. Raises CatalogError if the catalog does not answer.

        Args:
            storage: the destination.
            settings: the catalog.
            creates: whether to create the catalog's own tables in an empty SQL catalog.
        """
        catalog = connect(settings, storage, creates=creates)

        if settings.owns_tables:
            placed = PlacedStorage(storage.uri, storage.storage_options, storage.limits)
            catalog.files = StorageFiles(placed)
            versions = partial(OwnedVersions, settings, catalog, placed)
            return OwnedTables(placed, versions, settings, catalog)
        return cls(storage, partial(CatalogVersions, settings, catalog, storage))

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        return IcebergTable.open(self.storage, folder, self.versions(folder), version)

    def replace(self, folder: str, new: NewTable, previous: StoredTable | None) -> StoredTable:
        return IcebergTable.replace(self.storage, folder, self.versions(folder), new, previous)

    def is_own(self, folder: str) -> bool:
        # A failed `remove` may have removed the catalog's entry, but not all files.
        return super().is_own(folder) or any(
            self.storage.parse(path, lambda content: TABLE in content["properties"])
            for path in self.storage.list(f"{folder}/metadata")
            if _METADATA.fullmatch(path)
        )

    def remove(self, folder: str) -> None:
        if self.open_to_replace(folder)[0] is not None:
            self.versions(folder).remove()
        super().remove(folder)

    def find_folders(self) -> set[str]:
        return {match[1] for path in self.storage.list("") if (match := _METADATA.fullmatch(path))}


@dataclass(frozen=True)
class OwnedTables(IcebergTables):
    """The tables of a destination in a catalog that owns them. Use `IcebergTables.in_catalog` to create an instance."""

    storage: PlacedStorage
    versions: Callable[[str], OwnedVersions]
    settings: CatalogSettings
    catalog: Catalog

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        if version is not None:
            # The catalog says where the files of an old version are.
            self.versions(folder).find()
        return super().open(folder, version)

    def prepare(self, folder: str, table: TableSpec) -> None:
        self.versions(folder).prepare(table)

    def is_own(self, folder: str) -> bool:
        # Another program may have removed the catalog's entry, or have a table of this name now.
        return any(map(_OWN_FILE.fullmatch, self.storage.list_own(folder))) or self._has_entry(folder)

    def _has_entry(self, folder: str) -> bool:
        # A load that did not end leaves a table without rows.
        self.versions(folder).find()
        return folder in self.storage.places

    def remove(self, folder: str) -> None:
        with suppress(ForeignTableError):
            self.versions(folder).remove()
        for path in self.storage.list_own(folder):
            self.storage.delete(path)

    def find_folders(self) -> set[str]:
        with_files = {match[1] for path in self.storage.list("") if (match := _OWN_FILE.fullmatch(path))}
        return with_files | set(ask(self.settings, lambda: list(self._find_entries())))

    def _find_entries(self) -> Iterator[str]:
        for namespace in self.catalog.list_namespaces():
            for name in self.catalog.list_tables(namespace):
                with suppress(NoSuchTableError, NoSuchIcebergTableError):
                    properties = self.catalog.load_table(name).metadata.properties
                    if properties.get(DESTINATION) == self.storage.uri and FOLDER in properties:
                        yield properties[FOLDER]
