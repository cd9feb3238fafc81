"""A table of a destination as an Iceberg table: commits of files, properties and the position, each in one step.

pyiceberg has the models of the metadata and the manifests, and their Avro; it writes no deletes, and no commit of files
that others wrote. A commit here is a version of the metadata, a file that must not exist yet.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Self

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate, TableUpdate, update_table_metadata

from logicalrep.pipeline.formats.iceberg.content import Content
from logicalrep.pipeline.formats.iceberg.foreign_commits import change_between, writer_of
from logicalrep.pipeline.formats.iceberg.manifests import ManifestWriter
from logicalrep.pipeline.formats.iceberg.memory_files import location, path_of
from logicalrep.pipeline.formats.iceberg.metadata import (
    APPLIED,
    LOAD,
    STOPPED,
    TABLE,
    VERSION,
    WRITER,
    expiry,
    find_version,
    hint_path,
    metadata_path,
    new_metadata,
    next_sequence_number,
    read_version,
    schema_updates,
    snapshot_updates,
    superseded,
    surplus_snapshots,
)
from logicalrep.pipeline.formats.iceberg.old_versions import read_old_version
from logicalrep.pipeline.formats.iceberg.removed_files import VersionsRemoved
from logicalrep.pipeline.formats.removed_files import RemovedFile
from logicalrep.pipeline.formats.stored_table import (
    ForeignTableError,
    LogDamagedError,
    NewTable,
    StoredTable,
    WriterError,
)
from logicalrep.pipeline.spec.table_facts import Skipped
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn

SAVE_EVERY = 50
"""The number of commits after which the list of removed files is saved."""
KEPT_VERSIONS = 10
"""The last versions of the metadata that stay; older ones are needed by nobody."""
_FIXED = {"write.metadata.previous-versions-max": str(KEPT_VERSIONS)}
"""The properties that every table has."""


class IcebergTable(StoredTable):
    """A replicated Iceberg table in a folder, by its metadata. `open` and `replace` make one."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """Take the table's folder."""
        self.storage, self.folder = storage, folder
        self.version, self.files, self.load = 0, {}, ""
        self.removed = VersionsRemoved(storage, folder, self._expire)
        """The files that are in the last version no more and still there."""
        self._writer = uuid.uuid4().hex
        self._metadata: TableMetadata | None = None
        self._content = Content()
        self._applied: dict[str, int] = {}
        self._hinted = self._saved = 0
        self._keep_hours: float | None = None

    @classmethod
    def open(cls, storage: Storage, folder: str, version: int | None = None) -> Self | None:
        """Do what `IcebergTables.open` does."""
        table = cls(storage, folder)
        try:
            version = find_version(storage, folder) if version is None else version
            metadata = None if version is None else read_version(storage, folder, version)
            if version is not None and metadata is None:
                return table if table._take_old(version) else None
            if version is None or metadata is None:
                return None
            table._take(metadata, version)
        except MalformedFileError as error:
            raise LogDamagedError(f"{error.description}; restore it, or remove the folder") from None
        return table

    def _take(self, metadata: TableMetadata, version: int) -> None:
        uri, properties = self.storage.uri_of(self.folder), metadata.properties
        if TABLE not in properties:
            raise ForeignTableError(
                f"{uri} is an Iceberg table of another program: replicate to another destination, or remove it"
            )
        if metadata.format_version != 2 or metadata.spec().fields:
            raise LogDamagedError(
                f"{uri} has the format version {metadata.format_version}, or partitions, by a change of another "
                "program, which this version of logicalrep does not read: restore it, or remove the folder"
            )
        with self.storage.parsing(metadata_path(self.folder, version)):
            self.table, self.load = TableSpec.from_json(properties[TABLE]), properties[LOAD]
            self._applied = {application: int(lsn) for application, lsn in json.loads(properties[APPLIED]).items()}
            snapshot = metadata.current_snapshot()
            listed = None if snapshot is None else path_of(self.storage, snapshot.manifest_list)
            content = Content.read(self.storage, self.folder, listed, self.table)
        self.version = version
        self._set(metadata, content)

    def _take_old(self, version: int) -> bool:
        """Take the rows of a version whose metadata is gone, for reading alone; return whether it is known."""
        found = read_old_version(self.storage, self.folder, version)
        if found is None:
            return False
        path, self.table = found
        self.version, self._content = version, Content.read(self.storage, self.folder, path, self.table)
        self.files = self._content.files
        return True

    @classmethod
    def replace(cls, storage: Storage, folder: str, made: NewTable, before: StoredTable | None) -> Self:
        """Do what `IcebergTables.replace` does."""
        assert before is None or isinstance(before, cls)
        there = cls.open(storage, folder)
        if there is not None and there.load == made.load:
            return there  # The earlier try had succeeded, though its answer was lost.
        if there is not None and before is not None and there.version > before.version:
            # All of its rows go, whatever another program has done to them.
            before._follow_others(before.version + 1)
        new = cls(storage, folder)
        new.table, new.load, new._keep_hours = made.table, made.load, made.keep_hours
        if before is not None:
            new.version, new.removed, new.files = before.version, before.removed, before.files
            new._metadata, new._content = before._metadata, before._content
            new._hinted, new._saved = before._hinted, before._saved
            new.removed.expire = new._expire
        old = list(new.files.values())
        stays = new.files.keys() & {file.path for file in made.files}
        files, old = ([file for file in each if file.path not in stays] for each in (made.files, old))
        properties, position = {LOAD: made.load, **_FIXED, **_retention(made.keep_hours)}, (made.application, made.lsn)
        new._write(files, old, position, table=made.table, properties=properties, has_snapshot=True)
        return new

    def applied(self, application: str) -> Lsn | None:
        return Lsn(self._applied[application]) if application in self._applied else None

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], application: str, lsn: Lsn) -> int:
        self._write(added, removed, (application, lsn))
        return self.version

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        self._write(added, removed, None, operation=Operation.REPLACE)

    def describe(
        self,
        table: TableSpec,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
        *,
        position: tuple[str, Lsn] | None = None,
    ) -> None:
        if self.table == table:
            return  # The earlier try had succeeded, though its answer was lost.
        self._write(added, removed, position, table=table)
        # Bounds are by field ids: the files' columns are called as they are now.
        self._content = Content.of(self.storage, self.folder, self._content.manifests, table)
        self.files = self._content.files

    def skip(self, skipped: Skipped, application: str) -> None:
        if skipped in self.table.skipped:
            return  # The earlier try had succeeded, though its answer was lost.
        table = replace(self.table, skipped=(*self.table.skipped, skipped))
        self._write([], [], (application, Lsn(skipped.lsn)), table=table, gone=(STOPPED,))

    def write_stopped(self, reason: str) -> None:
        self._write_properties({STOPPED: reason})

    def keep_for(self, hours: float) -> None:
        self._keep_hours = hours
        self._write_properties(_retention(hours))

    def _write_properties(self, properties: Mapping[str, str]) -> None:
        """Add to the table's properties, unless they are there already."""
        assert self._metadata is not None
        if not properties.items() <= self._metadata.properties.items():
            self._write([], [], None, properties=properties)

    def _write(
        self,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        position: tuple[str, Lsn] | None,
        *,
        table: TableSpec | None = None,
        properties: Mapping[str, str] | None = None,
        gone: Sequence[str] = (),
        expired: Collection[int] = (),
        operation: Operation | None = None,
        has_snapshot: bool = False,
    ) -> None:
        """Write what a commit needs, and then the next version of the metadata, which is the commit."""
        described, version = table or self.table, self.version + 1
        before = self._metadata or new_metadata(self.storage, self.folder, described)
        updates: list[TableUpdate] = schema_updates(before, described)
        schema = update_table_metadata(before, tuple(updates)).schema() if updates else before.schema()
        applied = {} if properties is not None and LOAD in properties else dict(self._applied)
        if position is not None:
            applied[position[0]] = int(position[1])
        content = self._content
        if added or removed or has_snapshot:
            snapshot_id = secrets.randbits(62) + 1
            number = next_sequence_number(before)
            writer = ManifestWriter(self.storage, f"{self.folder}/metadata", schema, snapshot_id, number)
            content = self._content.changed(writer, self.folder, described, added, removed)
            path = writer.write_list(content.manifests, before.current_snapshot_id)
            summary = _summary(operation, added, removed, self.files, content.files, position)
            updates += snapshot_updates(self.storage, before, schema.schema_id, snapshot_id, path, summary)
            old = [] if self._keep_hours is None else superseded(before, (time.time() - self._keep_hours * 3600) * 1000)
            expired = {*expired, *surplus_snapshots(before), *old}
        updates += expiry(sorted(expired))
        if is_there := [name for name in gone if name in before.properties]:
            updates.append(RemovePropertiesUpdate(removals=is_there))
        own = {TABLE: described.to_json(), APPLIED: json.dumps(applied), WRITER: self._writer, VERSION: str(version)}
        updates.append(SetPropertiesUpdate(updates={**(properties or {}), **own}))
        earlier = location(self.storage, metadata_path(self.folder, self.version)) if self.version else None
        after = update_table_metadata(before, tuple(updates), metadata_location=earlier)
        if not self.storage.create(metadata_path(self.folder, version), after.model_dump_json().encode()):
            self._refuse_others(version)
        self._set(after, content)
        self.table, self.version, self._applied = described, version, applied
        # It is a hint: what is not written now is written by the next commit, or in the upkeep.
        with suppress(StorageError):
            self._write_hint()

    def _write_hint(self) -> None:
        self.storage.write(hint_path(self.folder), str(self.version).encode())
        self._hinted = self.version

    def _set(self, metadata: TableMetadata, content: Content) -> None:
        """Take what a later version has, and note which files are not needed for it any more."""
        before = self._sizes()
        self._metadata, self._content, self.files = metadata, content, content.files
        now = self._sizes()
        for path in before.keys() - now.keys():
            self.removed.add(RemovedFile(time.time(), path, before[path]))
        self.removed.keep(now.keys() - before.keys())

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of the files that the last version needs, by their paths in the table's folder."""
        return self._content.sizes(self.storage, self.folder, self._metadata)

    # Commits of others

    def refuse_others(self) -> None:
        if self.storage.read(metadata_path(self.folder, self.version + 1)) is not None:
            self._refuse_others(self.version + 1)

    def _refuse_others(self, version: int) -> None:
        """Find whose a version is that is there already, and raise an error: the commit is not right then.

        Raises:
            StorageError: it is this process's own, or has the same rows: the next try goes on from it.
            DamagedError: another program has changed the rows.
            WriterError: another process of ours has made it.
        """
        uri = self.storage.uri_of(self.folder)
        is_foreign, changes = self._follow_others(version)
        if not is_foreign:
            raise StorageError(f"{uri}: the answer to an earlier commit was lost; it is there")
        if changes is not None:
            raise DamagedError(f"{uri}: {changes}")
        raise StorageError(f"{uri}: a commit of another program is there, with the same rows; going on from it")

    def _follow_others(self, version: int) -> tuple[bool, str | None]:
        """Go on from the versions that are there from one on.

        Returns whether one of them is of another program, and what these have changed. Raises WriterError for one of
        another process of ours.
        """
        is_foreign, changes, last = False, None, self._metadata
        while (there := read_version(self.storage, self.folder, version)) is not None:
            writer = writer_of(there, version)
            if writer is not None and writer != self._writer:
                raise WriterError(
                    f"{self.storage.uri_of(self.folder)} has a version {version} that this process did not write: "
                    "another process replicates to the same destination; stop it"
                )
            if writer is None:
                is_foreign = True
                changes = changes or (None if last is None else change_between(last, there))
            last, version = there, version + 1
        if last is not None:
            self._take(last, version - 1)
        return is_foreign, changes

    def changed_by_others(self, known: int) -> str | None:
        later = self._metadata
        assert later is not None
        for version in range(self.version, max(known, 1) - 1, -1):
            there = read_version(self.storage, self.folder, version)
            if there is None:
                return f"what was committed as version {version} is not there any more"
            if writer_of(there, version) is not None or version == known:
                return None if version == self.version else change_between(there, later)
        return None

    # Upkeep: old snapshots and their files removed

    @property
    def opens_slowly(self) -> bool:
        return self.version - self._saved >= SAVE_EVERY

    def is_upkeep_due(self, keep_hours: float) -> bool:
        return self.opens_slowly or self._hinted < self.version or self.is_upkeep_urgent(keep_hours)

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        has_surplus = self.removed.has_surplus(self._there, keep_hours)
        return has_surplus or not self.removed.is_complete or self.removed.has_versions_before(self._first_version)

    @property
    def _there(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def _first_version(self) -> int:
        return self.version - KEPT_VERSIONS - SAVE_EVERY

    def maintain(self, keep_hours: float) -> None:
        if self._hinted < self.version:
            self._write_hint()
        is_complete = self.removed.is_complete
        if not is_complete:
            self.removed.recall(self.version, self._sizes(), keep_hours)
        if not is_complete or self.opens_slowly:
            self.removed.save(self.version)
            self._saved = self.version
        if self.removed.has_surplus(self._there, keep_hours):
            # Those of all files that go by their age, in one commit.
            self._expire(time.time() - keep_hours * 3600)
        self.removed.delete_surplus(self._there, keep_hours)
        if self.removed.has_versions_before(self._first_version):
            self.removed.delete_versions_before(self.version - KEPT_VERSIONS, keep_hours)

    def _expire(self, until: float) -> None:
        """Remove the snapshots that need files which were removed up to a time, in seconds since 1970."""
        assert self._metadata is not None
        expired = superseded(self._metadata, until * 1000)
        if expired:
            self._write([], [], None, expired=expired)


def _retention(hours: float) -> dict[str, str]:
    """Return the properties by which other programs keep old versions for as long."""
    return {"history.expire.max-snapshot-age-ms": str(int(hours * 3_600_000)), "gc.enabled": "false"}


def _summary(
    operation: Operation | None,
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    before: Mapping[str, DataFile],
    files: Mapping[str, DataFile],
    position: tuple[str, Lsn] | None,
) -> Summary:
    new = [file for file in added if file.path not in before]
    gone = [file for file in removed if file.path not in files]
    if operation is None:
        operation = Operation.OVERWRITE if removed else Operation.APPEND
    more = {
        "added-data-files": len(new),
        "deleted-data-files": len(gone),
        "added-records": sum(file.rows for file in new),
        "deleted-records": sum(file.rows for file in gone),
        "total-data-files": len(files),
        "total-records": sum(file.rows for file in files.values()),
        "total-position-deletes": sum(file.rows - file.rows_there for file in files.values()),
    }
    texts = {name: str(count) for name, count in more.items()}
    if position is not None:
        texts["logicalrep.lsn"] = str(position[1])
    return Summary(operation, **texts)
