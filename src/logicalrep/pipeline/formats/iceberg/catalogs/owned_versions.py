"""The versions of a table's metadata in a REST catalog that owns the table.

The catalog chooses the location of the table, hands out credentials for it, and may merge its files and remove its
snapshots. replicate creates the table before it writes the first file, because only then the location is certain; the
first commit has the rows. The table's properties name the destination and the folder, not the location.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate

from logicalrep.pipeline.formats.catalog_errors import InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.catalog_versions import CatalogVersions, Creation, requirements_of
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import OWN_PROPERTIES, ask, catalog_error, is_catalog_error
from logicalrep.pipeline.formats.iceberg.catalogs.vended_credentials import placed
from logicalrep.pipeline.formats.iceberg.metadata import TABLE, can_become, format_change, iceberg_schema
from logicalrep.pipeline.formats.iceberg.snapshots import files_of_snapshots
from logicalrep.pipeline.formats.iceberg.versions import MetadataVersion
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.layout import FolderLayout
from logicalrep.pipeline.storage.placed import Place, PlacedStorage
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep_runtime.errors import LogicalRepError

DESTINATION, FOLDER = "logicalrep.destination", "logicalrep.folder"
"""The properties with the destination and the folder of a table that replicate created in the catalog."""
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ROWS = r"(part|deletes)-[0-9a-f]{32}(-full)?\.(parquet|puffin)"
_OWN_FILE = re.compile(rf"(.*/)?({_ROWS}|({_UUID}-m|snap-[0-9]+-{_UUID})\.avro)")
"""The names that replicate gives to files of tables."""
_FOLDERS = {"write.data.path": "data", "write.metadata.path": "metadata"}
"""The properties with the locations of new files, and the folders without the properties."""
_HASHED = "write.object-storage.enabled"


class OwnedVersions(CatalogVersions):
    deletes_metadata = False

    def __init__(self, settings: CatalogSettings, catalog: Catalog, storage: PlacedStorage, folder: str) -> None:
        super().__init__(settings, catalog, storage, folder)
        self._placed = storage

    def prepare(self, table: TableSpec) -> None:
        """Create the table in the catalog without rows, unless the catalog has it."""
        self.find()
        if self._table is not None and self._has_only_other_version(self._table.metadata, table):
            # No commit lowers a format version. An unfinished load has created the table, and its settings changed.
            self.remove()
        if self._table is None:
            ask(self._settings, self._make_namespace)
            self._create_empty(table)
            self._refuse_other_version(table)
        self._refuse_other_locations()

    def _refuse_other_version(self, table: TableSpec) -> None:
        """Raise ForeignTableError if the catalog chose the format version of the new table."""
        assert self._table is not None
        metadata = self._table.metadata
        if not can_become(metadata, table):
            raise ForeignTableError(
                f"the catalog has created {self._shown} with {_other_version(metadata, table)}: pass --format-version "
                f"{metadata.format_version}, or let the catalog create tables of the version that replicate asks for"
            )

    def _has_only_other_version(self, metadata: TableMetadata, table: TableSpec) -> bool:
        """Return whether a table without rows cannot get a format version; raise ForeignTableError if it has rows."""
        if TABLE in metadata.properties or can_become(metadata, table):
            return False
        if metadata.snapshots:
            raise ForeignTableError(
                f"{self._shown} has {_other_version(metadata, table)}, and rows of another program: remove it, or pass "
                f"--format-version {metadata.format_version}"
            )
        return True

    def remove(self) -> None:
        self.find()
        if self._table is None:
            return
        # A catalog deletes the files that snapshots name, and so leaves the files of commits that failed.
        needed = files_of_snapshots(self._storage, self._table.metadata)
        for path in self._storage.list(self._folder):
            if _OWN_FILE.fullmatch(path) and path not in needed:
                self._storage.delete(path)
        ask(self._settings, partial(self._remove_by, self._catalog.purge_table))
        self._table = None

    def _refuse_other_locations(self) -> None:
        """Raise ForeignTableError if new files have to be outside of the table's location."""
        assert self._table is not None
        metadata = self._table.metadata
        for name in _FOLDERS:
            if _folder(metadata, name) is None:
                raise ForeignTableError(
                    f"{self._shown} has the property {name} with the location {metadata.properties[name]}: replicate "
                    f"writes only below {metadata.location}, in folders whose names do not begin with _; remove the "
                    "property, or set such a location"
                )

    def _create_empty(self, table: TableSpec) -> None:
        version = str(table.settings.format_version)
        own = {DESTINATION: self._storage.uri, FOLDER: self._folder, "format-version": version}
        try:
            created = self._catalog.create_table(self._name, iceberg_schema(table, 0), properties=own)
        except Exception as error:
            if isinstance(error, LogicalRepError) or not is_catalog_error(error):
                raise
            # The answer may have been lost: the properties of an existing table are the proof.
            self.find()
            if self._table is None:
                raise catalog_error(self._settings, error) from None
            return
        if omitted := own.keys() - created.metadata.properties.keys() - {"format-version"}:
            raise InvalidCatalogError(
                f"{self._shown} lacks properties that replicate set, {', '.join(sorted(omitted))}: let the catalog "
                f"store properties whose names begin with {OWN_PROPERTIES}, or use another catalog"
            )
        self.find()
        self._refuse_other_columns(iceberg_schema(table, 0), created.metadata)

    def _refuse_other_columns(self, expected: Schema, metadata: TableMetadata) -> None:
        """Raise ForeignTableError if the catalog changed names of columns, as catalogs do that allow small letters."""
        names = zip(expected.column_names, metadata.schema().column_names, strict=False)
        if changed := [f"{name} to {changed_name}" for name, changed_name in names if name != changed_name]:
            raise ForeignTableError(
                f"{self._shown} does not have the names of its columns: the catalog has changed {', '.join(changed)}; "
                "rename the columns, leave them out, or use another catalog"
            )

    def find(self, number: int | None = None) -> MetadataVersion | None:
        version = super().find(number)
        if version is None and number is None:
            self._table = None
        return None if version is not None and TABLE not in version.metadata.properties else version

    def _accept(self, table: Table) -> None:
        metadata = table.metadata
        owner = metadata.properties.get(DESTINATION), metadata.properties.get(FOLDER)
        if owner != (self._storage.uri, self._folder):
            raise ForeignTableError(
                f"{self._shown} is not the table {self._folder} of {self._storage.uri}: two tables have one name "
                "there; rename a table, or use another catalog"
            )
        storage = placed(self._settings, self._name, metadata.location.rstrip("/"), table.config, self._storage)
        self._placed.place(self._folder, Place(storage, _layout(metadata)))

    def start(self, table: TableSpec, properties: Mapping[str, str]) -> TableMetadata:
        if self._table is None:
            self.prepare(table)
        assert self._table is not None
        metadata = self._table.metadata
        if not can_become(metadata, table):
            change = format_change(metadata, table.settings.format_version)
            raise DamagedError(f"{self._shown}: {change}; remove the table, so that replicate creates it again")
        return metadata

    def find_needed(self) -> set[str]:
        # Files of the catalog, and of its services, are theirs: no metadata that replicate reads may name them.
        start = f"{self._folder}/"
        paths = {path.removeprefix(start) for path in self._storage.list(self._folder)}
        return super().find_needed() | {path for path in paths if _OWN_FILE.fullmatch(path) is None}

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        self._refuse_other_locations()
        version = super().commit(last, start, updates, snapshot_id)
        if version is not None and version.metadata.current_schema_id != start.current_schema_id:
            described = TableSpec.from_json(version.metadata.properties[TABLE])
            self._refuse_other_columns(iceberg_schema(described, 0), version.metadata)
        return version

    def _create(self, start: TableMetadata) -> Creation:
        assert self._table is not None
        return Creation(self._table, requirements_of(start))

    def retention(self, hours: float) -> dict[str, str]:
        # The catalog's own settings decide how long snapshots and metadata stay.
        return {}


def _other_version(metadata: TableMetadata, table: TableSpec) -> str:
    return f"format version {metadata.format_version}, and not {table.settings.format_version}"


def _layout(metadata: TableMetadata) -> FolderLayout:
    """Return where new files are; files that have to be elsewhere are refused before a commit."""
    data, of_metadata = (_folder(metadata, name) or "" for name in _FOLDERS)
    return FolderLayout(data, of_metadata, metadata.properties.get(_HASHED, "").lower() == "true")


def _folder(metadata: TableMetadata, name: str) -> str | None:
    """Return the folder within the table's location that a property names; None for another location.

    Names that begin with `_` are at the destination.
    """
    location = metadata.location.rstrip("/")
    path = metadata.properties.get(name, f"{location}/{_FOLDERS[name]}").rstrip("/")
    if path == location:
        return ""
    folder = path.removeprefix(f"{location}/")
    is_own = path != folder and not folder.startswith("_") and {"", ".", ".."}.isdisjoint(folder.split("/"))
    return folder if is_own else None
