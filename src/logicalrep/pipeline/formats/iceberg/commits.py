"""The files and the updates of a commit to an Iceberg table, which `MetadataVersions.commit` makes the last version."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate, TableUpdate, update_table_metadata

from logicalrep.pipeline.formats.iceberg.content import Content
from logicalrep.pipeline.formats.iceberg.manifest_writer import ManifestWriter
from logicalrep.pipeline.formats.iceberg.metadata import (
    APPLIED,
    SNAPSHOT,
    TABLE,
    VERSION,
    WRITER,
    SnapshotNumbers,
    commit_summary,
    first_new_lineage,
    is_clock_behind,
    next_row_id,
    schema_updates,
    snapshot_updates,
    upgrades,
)
from logicalrep.pipeline.formats.iceberg.partitions import spec_updates
from logicalrep.pipeline.formats.iceberg.snapshots import expiry
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import Storage


@dataclass(frozen=True, kw_only=True)
class CommittedState:
    """The state of a table that a commit changes."""

    start: TableMetadata
    """The metadata of the last version, or of a table without a version."""
    number: int
    """The number of the last version."""
    content: Content
    files: Mapping[str, DataFile]
    """The data files by path, also if the content is unknown."""
    table: TableSpec
    applied: Mapping[str, int]
    """The LSNs up to which the table has the commits of each application."""


@dataclass(frozen=True, kw_only=True)
class RequestedCommit:
    """The changes of one commit."""

    added: Sequence[DataFile] = ()
    removed: Sequence[DataFile] = ()
    position: Position | None = None
    """The position of the table afterwards; None if no row changes."""
    table: TableSpec | None = None
    """The new description; None if the description stays."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The new values of properties."""
    removed_properties: Sequence[str] = ()
    expired_until: float | None = None
    """A time in seconds since 1970: the commit only removes the snapshots superseded up to it."""
    operation: Operation | None = None
    """The operation of the snapshot; None to choose it by the files."""
    is_load: bool = False
    """Whether all rows and applied positions are replaced."""


@dataclass(frozen=True)
class WrittenCommit:
    """A commit whose files are durable, and the state of the table with it."""

    updates: Sequence[TableUpdate]
    snapshot_id: int | None
    content: Content
    table: TableSpec
    applied: dict[str, int]


@dataclass(frozen=True)
class CommitWriter:
    """Writes the commits of one table."""

    storage: Storage
    folder: str
    """The table's folder."""
    writer: str
    """The name of the process, which finds its commits by it."""
    commits_snapshots: bool
    """As `MetadataVersions.commits_snapshots`."""
    merges_manifests: bool

    def write(self, state: CommittedState, requested: RequestedCommit, expired: set[int]) -> WrittenCommit:
        """Write the files of a commit, and return its updates. `expired` are the ids of the snapshots that it removes.

        Raises StorageError if a file cannot be written.
        """
        start, table = state.start, requested.table or state.table
        updates: list[TableUpdate] = [
            *upgrades(start, table),
            *schema_updates(start, table),
            *spec_updates(start, table),
        ]
        changed = update_table_metadata(start, tuple(updates)) if updates else start
        applied = {} if requested.is_load else dict(state.applied)
        if requested.position is not None:
            applied[requested.position.application] = int(requested.position.lsn)
        own = {WRITER: self.writer, VERSION: str(state.number + 1)}
        content, snapshot_id = state.content, None
        # A catalog gives a commit without a snapshot the clock's time, whatever the time of the last commit.
        only_expires = requested.expired_until is not None and self.commits_snapshots and not is_clock_behind(start)
        if _needs_snapshot(start, changed, requested) or (self.commits_snapshots and not only_expires):
            content, snapshot_id, new_updates = self._write_snapshot(state, requested, changed, table, own)
            updates += new_updates
        if snapshot_id is not None or requested.expired_until is not None:
            updates += expiry(start, expired)
        if removals := [name for name in requested.removed_properties if name in start.properties]:
            updates.append(RemovePropertiesUpdate(removals=removals))
        if not only_expires:
            own |= {TABLE: table.to_json(), APPLIED: json.dumps(applied)}
            own |= {SNAPSHOT: str(snapshot_id)} if self.commits_snapshots else {}
            updates.append(SetPropertiesUpdate(updates={**requested.properties, **own}))
        return WrittenCommit(updates, snapshot_id, content, table, applied)

    def _write_snapshot(
        self,
        state: CommittedState,
        requested: RequestedCommit,
        changed: TableMetadata,
        table: TableSpec,
        own: Mapping[str, str],
    ) -> tuple[Content, int, list[TableUpdate]]:
        """Write the manifests of a snapshot; return its content, its id and its updates."""
        start, added, removed = state.start, requested.added, requested.removed
        snapshot_id = secrets.randbits(62) + 1
        first = first_new_lineage(start, (file for file in added if file.path not in state.files))
        numbers = SnapshotNumbers(snapshot_id, first.sequence_number)
        writer = ManifestWriter(
            self.storage,
            self.folder,
            changed,
            numbers,
            _new_columns(start, changed),
            merges_manifests=self.merges_manifests,
        )
        content, end = state.content.write_changes(writer, table, added, removed, first.first_row_id)
        if writer.has_row_lineage:
            numbers = replace(numbers, row_ids=range(next_row_id(start), end))
        path = writer.write_list(content.manifests, start.current_snapshot_id)
        operation = requested.operation
        if operation is None and not _has_rows(requested):
            operation = Operation.REPLACE
        summary = commit_summary(operation, added, removed, state.files, content.files, requested.position, own)
        updates = snapshot_updates(self.storage, start, changed.current_schema_id, numbers, path, summary)
        return content, snapshot_id, updates


def _has_rows(requested: RequestedCommit) -> bool:
    return bool(requested.added or requested.removed or requested.is_load)


def _needs_snapshot(start: TableMetadata, changed: TableMetadata, requested: RequestedCommit) -> bool:
    is_upgraded = changed.format_version != start.format_version
    return _has_rows(requested) or bool(_new_columns(start, changed)) or is_upgraded


def _new_columns(start: TableMetadata, changed: TableMetadata) -> frozenset[int]:
    old_columns, columns = ({field.field_id for field in state.schema().fields} for state in (start, changed))
    return frozenset(columns - old_columns)
