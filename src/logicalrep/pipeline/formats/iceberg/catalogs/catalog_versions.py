"""The versions of a table's metadata in a catalog, whose compare-and-set is the commit.

Each commit except the removal of snapshots has a snapshot, whose parent has to be the last snapshot: so the catalog
refuses one of two writers. replicate chooses the snapshot's id before, and finds a commit whose answer was lost among
the ancestors of the last snapshot: a service may merge files and remove snapshots between any two steps of replicate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    AssignUUIDUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.typedef import Identifier

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_name
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import ask, catalog_error, is_catalog_error
from logicalrep.pipeline.formats.iceberg.foreign_commits import columns_of
from logicalrep.pipeline.formats.iceberg.memory_files import StorageFiles
from logicalrep.pipeline.formats.iceberg.metadata import (
    SNAPSHOT,
    TABLE,
    VERSION,
    WRITER,
    format_change,
    iceberg_schema,
    new_metadata,
    read_metadata,
    retention_properties,
    upgrade_to,
)
from logicalrep.pipeline.formats.iceberg.old_versions import store_old_versions
from logicalrep.pipeline.formats.iceberg.partitions import has_current_spec
from logicalrep.pipeline.formats.iceberg.snapshots import ancestors
from logicalrep.pipeline.formats.iceberg.versions import LaterCommits, MetadataVersion, MetadataVersions
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage, decoding, first_line
from logicalrep_runtime.errors import LogicalRepError

_ABSENT = "it is no longer in the catalog"
_ROWS = "another program has changed its rows"


@dataclass(frozen=True)
class Creation:
    """What a commit sends with the updates of the rows."""

    table: Table
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...] = ()


class CatalogVersions(MetadataVersions):
    commits_snapshots = True
    deletes_metadata = True
    """Whether replicate, and not the catalog, deletes metadata that no reader needs."""

    def __init__(self, settings: CatalogSettings, catalog: Catalog, storage: Storage, folder: str) -> None:
        self._settings, self._catalog, self._storage, self._folder = settings, catalog, storage, folder
        self.does_upkeep = settings.does_upkeep
        self._name = catalog_name(folder)
        self._table: Table | None = None
        self._needed: set[str] = set()
        self._stale: dict[str, float] = {}
        """The metadata that the last version no longer names, with the times from which it did not."""

    def find(self, number: int | None = None) -> MetadataVersion | None:
        table = ask(self._settings, self._load)
        if table is None:
            return None
        current = self._take(table)
        # A service may have merged the files of replicate's last commit, and removed its snapshot.
        if number is None or (number == current.number and self.foreign_change(current, -1) is None):
            return current
        # A commit of another program copies the number of replicate's last commit.
        own_versions = (version for version in (current, *self._earlier(table.metadata)) if _is_own(version))
        return next((version for version in own_versions if version.number == number), None)

    def _earlier(self, metadata: TableMetadata) -> Iterator[MetadataVersion]:
        """Yield the versions before the given metadata, latest first, until a file is missing.

        Each version names some earlier versions. A file that no version names belongs to a commit that failed.
        """
        log = list(metadata.metadata_log)
        while log:
            path = self._path(log.pop().metadata_file)
            earlier = None if path is None else read_metadata(self._storage, path)
            if path is None or earlier is None:
                return
            yield _version_of(earlier, path)
            log = log or list(earlier.metadata_log)

    def _load(self) -> Table | None:
        try:
            table = self._catalog.load_table(self._name)
        except ValidationError as error:
            raise MalformedFileError(f"the metadata of {self._shown} is damaged: {first_line(error)}") from None
        except NoSuchIcebergTableError:
            raise ForeignTableError(f"{self._shown} is not an Iceberg table: remove it, or rename the table") from None
        except ValueError as error:
            raise ForeignTableError(
                f"{self._shown} is not the table of this destination: {first_line(error)}"
            ) from None
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            if isinstance(error, LogicalRepError) or is_catalog_error(error):
                raise
            raise MalformedFileError(f"the entry of {self._shown} is damaged: {first_line(error)}") from None
        if not table.metadata_location:
            raise MalformedFileError(f"the entry of {self._shown} is damaged: it names no metadata")
        return table

    @property
    def _shown(self) -> str:
        return f"the table {'.'.join(self._name)} in the catalog {self._settings.shown}"

    def _take(self, table: Table) -> MetadataVersion:
        self._accept(table)
        self._table = table
        log = (entry.metadata_file for entry in table.metadata.metadata_log)
        paths = {path for uri in (table.metadata_location, *log) if (path := self._path(uri)) is not None}
        self._stale |= dict.fromkeys(self._needed - paths, time.monotonic())
        self._needed = paths
        return _version_of(table.metadata, self._shown)

    def _accept(self, table: Table) -> None:
        """Raise ForeignTableError for the table of another program or destination."""
        if self._path(table.metadata.location) != self._folder:
            raise ForeignTableError(
                f"{self._shown} is at {table.metadata.location}, and not at {self._storage.uri}/{self._folder}: two "
                "tables have one name there; rename a table, or use another catalog"
            )

    def _path(self, uri: str) -> str | None:
        try:
            return self._storage.path_of(uri.rstrip("/"))
        except (ValueError, LogicalRepError):
            return None

    def commit_of(self, version: MetadataVersion) -> str | None:
        # Upkeep of other programs copies the number, so the identity is replicate's last snapshot.
        return next((str(commit.snapshot_id) for commit in _own_commits(version.metadata)), None)

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        table = self._table
        is_replaced = last is not None and last.metadata.table_uuid != start.table_uuid
        if is_replaced:
            # No commit lowers a format version.
            self.remove()
        if last is None or table is None or is_replaced:
            creation = self._create(start)
        else:
            creation = Creation(table, requirements_of(start))
        table = creation.table
        try:
            response = self._catalog.commit_table(table, creation.requirements, (*creation.updates, *updates))
        except (CommitFailedException, TableAlreadyExistsError):
            return None
        except Exception as error:
            if isinstance(error, LogicalRepError):
                raise
            if not is_catalog_error(error):
                # Another program may have removed the snapshots that this commit removes.
                current = self.find()
                if not isinstance(error, ValueError) or current is None or current.metadata == start:
                    raise
                return None
            # The commit may exist: its snapshot is the proof. The caller follows commits after it.
            current = self.find()
            if current is not None and snapshot_id is not None and current.metadata.current_snapshot_id == snapshot_id:
                return current
            if current is not None and current.metadata != start:
                # If a commit to a branch came first, a service may refuse this commit as an invalid request.
                return None
            raise catalog_error(self._settings, error) from None
        return self._take(
            Table(self._name, response.metadata, response.metadata_location, table.io, self._catalog, table.config)
        )

    def start(self, table: TableSpec, properties: Mapping[str, str]) -> TableMetadata:
        return new_metadata(self._storage, self._folder, table, properties)

    def retention(self, hours: float) -> dict[str, str]:
        return retention_properties(hours, self._storage.limits)

    def _create(self, start: TableMetadata) -> Creation:
        """Prepare the first commit of a table."""
        ask(self._settings, self._make_namespace)
        table = Table(self._name, start, "", StorageFiles(self._storage), self._catalog)
        return Creation(table, (AssertCreate(),), tuple(_creation_updates(start)))

    def remove(self) -> None:
        ask(self._settings, partial(self._remove_by, self._catalog.drop_table))

    def _remove_by(self, action: Callable[[Identifier], None]) -> None:
        with suppress(NoSuchTableError):
            action(self._name)

    def _make_namespace(self) -> None:
        # A user without the right to create a namespace may use an existing namespace.
        if not self._catalog.namespace_exists(self._name[:1]):
            with suppress(NamespaceAlreadyExistsError):
                self._catalog.create_namespace(self._name[:1])

    def follow(self, last: MetadataVersion | None) -> LaterCommits:
        latest = self.find()
        if latest is None:
            return LaterCommits(None) if last is None else LaterCommits(None, is_foreign=True, changes=_ABSENT)
        metadata, last_metadata = latest.metadata, None if last is None else last.metadata
        if last_metadata is not None and _rows_of(last_metadata) == _rows_of(metadata):
            return LaterCommits(latest)
        number = 0 if last is None else last.number
        writers = frozenset(commit.writer for commit in _own_commits(metadata) if commit.number > number)
        changes, current = self.foreign_change(latest, -1), metadata.current_snapshot()
        is_foreign = changes is not None or current is None or _writer_of(current) is None
        return LaterCommits(latest, writers, is_foreign, changes)

    def foreign_change(self, last: MetadataVersion, proven: int) -> str | None:
        metadata = last.metadata
        if TABLE not in metadata.properties:
            return None
        with decoding(last.name):
            described = TableSpec.from_json(metadata.properties[TABLE])
            is_partitioned = has_current_spec(metadata, described)
        if (change := format_change(metadata, described.settings.format_version)) is not None:
            return change
        if columns_of(metadata.schema()) != columns_of(iceberg_schema(described, 0)):
            return "another program has changed its columns"
        if not is_partitioned:
            return "another program has changed its partitions"
        for snapshot in _ancestors(metadata):
            if _writer_of(snapshot) is not None:
                # Another program may have set main back to an earlier snapshot of replicate.
                return None if _number_of(snapshot) == last.number else _ROWS
            if snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE:
                return _ROWS
        return _ROWS if _removed_commit(metadata) is None else None

    def find_needed(self) -> set[str]:
        # An earlier process may have left metadata whose facts are not yet stored for readers of the past.
        if self._table is not None:
            names = [version.name for version in self._earlier(self._table.metadata)]
            unneeded = [name for name in reversed(names) if name not in self._needed]
            self._stale = dict.fromkeys(unneeded, time.monotonic()) | self._stale
        start = f"{self._folder}/"
        return {path.removeprefix(start) for path in (*self._needed, *self._stale) if path.startswith(start)}

    @property
    def is_upkeep_due(self) -> bool:
        return len(self._expired()) > self._storage.limits.upkeep_versions

    def _expired(self) -> list[str]:
        """Return the stale metadata that no reader still reads."""
        until = time.monotonic() - self._storage.limits.metadata_seconds
        return [path for path, stale_since in self._stale.items() if stale_since <= until]

    @property
    def is_upkeep_urgent(self) -> bool:
        return False

    def maintain(self, oldest: float) -> None:
        if not self.is_upkeep_due:
            return
        expired = self._expired()
        versions = (_version_of(metadata, path) for path in expired if (metadata := read_metadata(self._storage, path)))
        store_old_versions(self._storage, self._folder, filter(_is_own, versions), oldest)
        for path in expired:
            if self.deletes_metadata and self.does_upkeep:
                self._storage.delete(path)
            del self._stale[path]


def _version_of(metadata: TableMetadata, name: str) -> MetadataVersion:
    # A table without a number belongs to another program.
    number = metadata.properties.get(VERSION, "0")
    return MetadataVersion(int(number) if number.isdecimal() else 0, metadata, name)


def _rows_of(metadata: TableMetadata) -> tuple[object, ...]:
    return metadata.current_snapshot_id, metadata.schema(), metadata.default_spec_id, metadata.format_version


def _is_own(version: MetadataVersion) -> bool:
    current = version.metadata.current_snapshot()
    return current is not None and _writer_of(current) is not None and _number_of(current) == version.number


def requirements_of(start: TableMetadata) -> tuple[TableRequirement, ...]:
    return (
        AssertTableUUID(uuid=start.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": start.current_snapshot_id}),
        AssertCurrentSchemaId.model_validate({"current-schema-id": start.current_schema_id}),
        AssertDefaultSpecId.model_validate({"default-spec-id": start.default_spec_id}),
    )


def _creation_updates(start: TableMetadata) -> list[TableUpdate]:
    return [
        AssignUUIDUpdate(uuid=start.table_uuid),
        upgrade_to(start.format_version),
        AddSchemaUpdate(schema=start.schema()),
        SetCurrentSchemaUpdate.model_validate({"schema-id": -1}),
        AddPartitionSpecUpdate(spec=start.spec()),
        SetDefaultSpecUpdate.model_validate({"spec-id": -1}),
        AddSortOrderUpdate.model_validate({"sort-order": start.sort_order_by_id(start.default_sort_order_id)}),
        SetDefaultSortOrderUpdate.model_validate({"sort-order-id": -1}),
        SetLocationUpdate(location=start.location),
        *([SetPropertiesUpdate(updates=start.properties)] if start.properties else []),
    ]


def _ancestors(metadata: TableMetadata) -> Iterator[Snapshot]:
    return ancestors(metadata, metadata.current_snapshot_id)


@dataclass(frozen=True)
class _OwnCommit:
    snapshot_id: int
    number: int
    writer: str


def _own_commits(metadata: TableMetadata) -> Iterator[_OwnCommit]:
    """Yield replicate's commits among the ancestors of the last snapshot, last first."""
    for snapshot in _ancestors(metadata):
        if (writer := _writer_of(snapshot)) is not None:
            yield _OwnCommit(snapshot.snapshot_id, _number_of(snapshot), writer)
    if (removed := _removed_commit(metadata)) is not None:
        yield removed


def _removed_commit(metadata: TableMetadata) -> _OwnCommit | None:
    """Return replicate's last commit if its snapshot was removed, and a remaining snapshot names it as the parent."""
    oldest, properties = None, metadata.properties
    for oldest in _ancestors(metadata):
        if _writer_of(oldest) is not None:
            return None
    if oldest is None or str(oldest.parent_snapshot_id) != properties.get(SNAPSHOT):
        return None
    return _OwnCommit(int(properties[SNAPSHOT]), int(properties[VERSION]), properties[WRITER])


def _writer_of(snapshot: Snapshot) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(WRITER)


def _number_of(snapshot: Snapshot) -> int:
    assert snapshot.summary is not None
    return int(snapshot.summary.additional_properties[VERSION])
