"""An Iceberg table of a destination: atomic commits of files, properties and the position.

pyiceberg has the models of metadata and manifests, and reads and writes their Avro; it writes no position deletes, and
commits no files that it did not write. `commits` writes the manifests and updates of a commit; `versions` makes the
updated metadata the last version.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NoReturn, Self, cast

from pyiceberg.table.snapshots import Operation

from logicalrep.pipeline.formats.iceberg.commits import CommittedState, CommitWriter, RequestedCommit
from logicalrep.pipeline.formats.iceberg.content import Content
from logicalrep.pipeline.formats.iceberg.metadata import (
    APPLIED,
    LOAD,
    STOPPED,
    TABLE,
    can_become,
    count_of_files,
    format_change,
)
from logicalrep.pipeline.formats.iceberg.old_versions import read_old_version
from logicalrep.pipeline.formats.iceberg.removed_files import IcebergRemovedFiles
from logicalrep.pipeline.formats.iceberg.snapshots import NeededFiles, ProtectedFiles, expired_snapshots
from logicalrep.pipeline.formats.iceberg.versions import LaterCommits, MetadataVersion, MetadataVersions
from logicalrep.pipeline.formats.stored_table import (
    ForeignTableError,
    Head,
    LogDamagedError,
    NewTable,
    Position,
    StoredTable,
    UnsupportedTableError,
    WriterError,
)
from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage, decoding
from logicalrep_runtime.scalars import Lsn


class IcebergTable(StoredTable):
    def __init__(self, storage: Storage, folder: str, metadata_versions: MetadataVersions) -> None:
        self.storage, self.folder, self._versions = storage, folder, metadata_versions
        self.version, self.files, self.load = 0, {}, ""
        self.does_upkeep = metadata_versions.does_upkeep
        self.removed = IcebergRemovedFiles(storage, folder, self._expire)
        """The existing files that the last version does not need."""
        self._protected = ProtectedFiles(storage, folder)
        self._writer = uuid.uuid4().hex
        self._last: MetadataVersion | None = None
        self._content = Content()
        self._applied: dict[str, int] = {}
        self._saved = 0
        self._keep_hours: float | None = None
        self._is_commit_unknown = False
        """Whether a commit whose answer was lost may exist."""
        self._unsupported: str | None = None
        """The reason why only `replace` may use this table, whose files may be unknown."""

    @classmethod
    def open(
        cls, storage: Storage, folder: str, metadata_versions: MetadataVersions, version: int | None = None
    ) -> Self | None:
        table = cls(storage, folder, metadata_versions)
        try:
            if version is not None and table._take_old(version):
                return table
            current = metadata_versions.find(version)
            if current is None:
                return None
            try:
                table._take(current)
            except (MalformedFileError, DamagedError):
                changes = None if version is not None else metadata_versions.foreign_change(current, -1)
                if changes is None:
                    raise
                table._take(current, changes)
        except (MalformedFileError, DamagedError) as error:
            if version is not None and isinstance(error, DamagedError):
                # Upkeep has deleted files of an old version.
                raise
            entry = " and its entry in the catalog" if metadata_versions.commits_snapshots else ""
            raise LogDamagedError(f"{error.description}; restore it, or remove the folder{entry}") from None
        if table._unsupported is not None:
            raise UnsupportedTableError.of(table, f"{storage.uri_of(folder)}: {table._unsupported}")
        return table

    def _take(self, version: MetadataVersion, changes: str | None = None) -> None:
        """Take the state of a version, whose files may be unreadable after `changes` of another program."""
        uri, metadata = self.storage.uri_of(self.folder), version.metadata
        properties = metadata.properties
        if TABLE not in properties:
            raise ForeignTableError(
                f"{uri} is an Iceberg table of another program: replicate to another destination, or remove it"
            )
        with self._decoding(version):
            table, load = TableSpec.from_json(properties[TABLE]), properties[LOAD]
            applied = {application: int(lsn) for application, lsn in json.loads(properties[APPLIED]).items()}
        unsupported = format_change(metadata, table.settings.format_version)
        try:
            content = self._read_content(version, table)
        except (MalformedFileError, DamagedError):
            # A load of a table with marked rows needs its files.
            if changes is None or table.form != "rows":
                raise
            content, unsupported = Content(), unsupported or changes
        # A read may fail and be retried, so the attributes change only after all reads.
        self.table, self.load, self._applied, self._unsupported = table, load, applied, unsupported
        self._set_version(version, content)

    def _read_content(self, version: MetadataVersion, table: TableSpec) -> Content:
        snapshot = version.metadata.current_snapshot()
        if snapshot is None:
            # replicate's first commit of a table has a snapshot.
            raise DamagedError(f"{self.storage.uri_of(self.folder)} has no snapshot: another program removed its rows")
        with self._decoding(version):
            listed, data_files = self.storage.path_of(snapshot.manifest_list), count_of_files(snapshot)
        return Content.read(self.storage, self.folder, listed, table, data_files)

    def _decoding(self, version: MetadataVersion) -> AbstractContextManager[None]:
        # The name of a version in a catalog is no path.
        return decoding(version.name) if self._versions.commits_snapshots else self.storage.decoding(version.name)

    def _take_old(self, version: int) -> bool:
        """Take the rows of a version whose metadata was deleted, for reading; return whether the version is stored."""
        old_version = read_old_version(self.storage, self.folder, version)
        if old_version is None:
            return False
        path, table = old_version
        try:
            content = Content.read(self.storage, self.folder, path, table)
        except DamagedError:
            # A service has removed the files; if the version is the last one, the service may have merged them.
            return False
        self.version, self.table, self._content, self.files = version, table, content, content.files
        return True

    @classmethod
    def replace(
        cls,
        storage: Storage,
        folder: str,
        metadata_versions: MetadataVersions,
        new: NewTable,
        previous: StoredTable | None,
    ) -> Self:
        assert previous is None or isinstance(previous, cls)
        try:
            stored = cls.open(storage, folder, metadata_versions)
        except UnsupportedTableError as error:
            stored = cast("Self", error.table)
        if stored is None:
            # Another program has removed the table, or its entry in the catalog.
            previous = None
        elif stored._unsupported is not None:
            last = None if previous is None else previous._versions.find()
            if previous is None or last is None:
                previous = stored
            else:
                previous._take(last, stored._unsupported)
        elif stored.load == new.load:
            return stored  # An earlier call succeeded, and its answer was lost.
        elif previous is not None:
            # The commit removes all rows, so changes of other programs do not matter.
            previous._follow_later_commits()
        replaced = cls(storage, folder, metadata_versions)
        replaced.table, replaced.load, replaced._keep_hours = new.table, new.load, new.keep_hours
        if previous is not None:
            settings = new.table.settings.with_later_version(previous.table.settings)
            replaced.table = replace(new.table, settings=settings)
            replaced.version, replaced.removed, replaced.files = previous.version, previous.removed, previous.files
            replaced._last = previous._last
            if previous._unsupported is None:
                replaced._content = previous._content
            replaced._versions, replaced._saved, replaced._writer = (
                previous._versions,
                previous._saved,
                previous._writer,
            )
            replaced.removed.expire = replaced._expire
        old = list(replaced.files.values())
        stays = replaced.files.keys() & {file.path for file in new.files}
        files, old = ([file for file in table_files if file.path not in stays] for table_files in (new.files, old))
        properties = {LOAD: new.load, **replaced._versions.retention(new.keep_hours)}
        # The reason of a stop ends with the load.
        replaced._write(
            RequestedCommit(
                added=files,
                removed=old,
                position=new.position,
                properties=properties,
                removed_properties=(STOPPED,),
                is_load=True,
            )
        )
        return replaced

    @property
    def head(self) -> Head:
        last = self._last
        return Head(self.version, None) if last is None else Head(last.number, self._versions.commit_of(last))

    def read_commit(self, version: int) -> str | None:
        metadata_version = self._versions.find(version)
        return None if metadata_version is None else self._versions.commit_of(metadata_version)

    def applied(self, application: str) -> Lsn | None:
        return Lsn(self._applied[application]) if application in self._applied else None

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], position: Position) -> int:
        self._write(RequestedCommit(added=added, removed=removed, position=position))
        return self.version

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        self._write(RequestedCommit(added=added, removed=removed, operation=Operation.REPLACE))

    def describe(
        self,
        table: TableSpec,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
        *,
        position: Position | None = None,
    ) -> None:
        if self.table == table:
            return  # An earlier call succeeded, and its answer was lost.
        self._write(RequestedCommit(added=added, removed=removed, position=position, table=table))
        # Manifests have bounds by field id: the content takes the columns' current names.
        self._content = Content.of(self.storage, self.folder, self._content.manifests, table)
        self.files = self._content.files

    def skip(self, skipped: Skipped, application: str) -> None:
        if skipped in self.table.skipped:
            return  # An earlier call succeeded, and its answer was lost.
        table = replace(self.table, skipped=(*self.table.skipped, skipped))
        position = Position(application, Lsn(skipped.lsn))
        self._write(RequestedCommit(position=position, table=table, removed_properties=(STOPPED,)))

    def write_stopped(self, reason: str) -> None:
        self._write_properties({STOPPED: reason})

    def set_retention(self, hours: float) -> None:
        self._keep_hours = hours
        self._write_properties(self._versions.retention(hours))

    def _write_properties(self, properties: Mapping[str, str]) -> None:
        assert self._last is not None
        if self._unsupported is None and not properties.items() <= self._last.metadata.properties.items():
            self._write(RequestedCommit(properties=properties))

    def _write(self, requested: RequestedCommit) -> None:
        if self._unsupported is not None:
            raise DamagedError(f"{self.storage.uri_of(self.folder)}: {self._unsupported}")
        versions = self._versions
        if versions.commits_snapshots and self._last is not None:
            # A catalog does not refuse a commit for branches, tags and settings that other programs changed meanwhile.
            self.refuse_unknown_commits()
        last, table = self._last, requested.table or self.table
        if last is None or not can_become(last.metadata, table):
            # A table of another program's format is replaced by a new table.
            start = versions.start(table, {} if last is None else last.metadata.properties)
        else:
            start = last.metadata
        expired: set[int] = set()
        if last is not None and self.does_upkeep:
            limits = self.storage.limits
            expired = expired_snapshots(start, requested.expired_until, self._keep_hours, limits.snapshots)
        state = CommittedState(
            start=start,
            number=self.version,
            content=self._content,
            files=self.files,
            table=self.table,
            applied=self._applied,
        )
        writer = CommitWriter(self.storage, self.folder, self._writer, versions.commits_snapshots, self.does_upkeep)
        written = writer.write(state, requested, expired)
        self._is_commit_unknown = True
        version = versions.commit(last, start, written.updates, written.snapshot_id)
        if version is None:
            self._refuse_later_commits()
        else:
            self._is_commit_unknown = False
            self._set_version(version, written.content)
            self.table, self._applied = written.table, written.applied

    def _set_version(self, version: MetadataVersion, content: Content) -> None:
        previous_sizes = self._sizes()
        self._last, self.version, self._content, self.files = version, version.number, content, content.files
        if self.does_upkeep:
            self.removed.record_commit(previous_sizes, self._sizes())

    def _sizes(self) -> dict[str, int]:
        return self._content.sizes(self.storage, self.folder, None if self._last is None else self._last.metadata)

    # Commits of other processes and programs

    def refuse_unknown_commits(self) -> None:
        followed = self._versions.follow(self._last)
        self._is_commit_unknown = False
        if followed.writers or followed.is_foreign:
            self._refuse(followed)
        if followed.last is not None:
            self._last = followed.last

    def _refuse_later_commits(self) -> NoReturn:
        self._refuse(self._versions.follow(self._last))

    def _refuse(self, followed: LaterCommits) -> NoReturn:
        """Take the state of the later commits, and raise their error, as the refused commit does not follow them."""
        self._adopt(followed)
        raise followed.refusal(self.storage.uri_of(self.folder))

    def _follow_later_commits(self) -> None:
        self._adopt(self._versions.follow(self._last))

    def _adopt(self, followed: LaterCommits) -> None:
        """Take the state of the last commit. Raises WriterError for a commit of another replicate process."""
        if followed.writers - {self._writer}:
            raise WriterError(
                f"{self.storage.uri_of(self.folder)} has a commit that this process did not write: another process "
                "replicates to the same destination; stop one of them"
            )
        self._is_commit_unknown = False
        if followed.last is not None:
            self._take(followed.last, followed.changes)

    def foreign_change(self, proven: int) -> str | None:
        assert self._last is not None
        return self._versions.foreign_change(self._last, proven)

    # Upkeep: the removal of old snapshots and their files

    @property
    def opens_slowly(self) -> bool:
        return self.does_upkeep and self.version - self._saved >= self.storage.limits.upkeep_versions

    def is_upkeep_due(self, keep_hours: float) -> bool:
        return self.opens_slowly or self._versions.is_upkeep_due or self.is_upkeep_urgent(keep_hours)

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        if not self.does_upkeep:
            return False
        has_surplus = self.removed.has_surplus(self._live_bytes, keep_hours)
        return has_surplus or not self.removed.is_complete or self._versions.is_upkeep_urgent

    @property
    def _live_bytes(self) -> int:
        return sum(file.size for file in self.files.values())

    def maintain(self, keep_hours: float) -> None:
        if self._unsupported is not None:
            return
        if self._is_commit_unknown:
            # A commit whose answer was lost may need files that look unneeded.
            self.refuse_unknown_commits()
        if not self.does_upkeep:
            # The facts of versions, for readers of the past, are no files that a service knows.
            self._versions.maintain(time.time() - keep_hours * 3600)
            return
        is_complete = self.removed.is_complete
        if not is_complete or self.removed.has_surplus(self._live_bytes, keep_hours):
            # Other programs may have created branches and tags since the last commit.
            self.refuse_unknown_commits()
        if not is_complete:
            assert self._last is not None
            protected = self._protected.of(self._last.metadata)
            live = self._sizes()
            needed = protected.including((*live, *self._versions.find_needed()))
            self.removed.recall(self.version, live, needed, keep_hours)
        if not is_complete or self.opens_slowly:
            self.removed.save(self.version)
            self._saved = self.version
        if self.removed.has_surplus(self._live_bytes, keep_hours):
            # Remove the snapshots of all files that are too old in one commit.
            self._expire(time.time() - keep_hours * 3600)
        self.removed.delete_surplus(self._live_bytes, keep_hours)
        # Versions whose files were deleted to limit disk space cannot be read, even within the retention.
        self._versions.maintain(max(time.time() - keep_hours * 3600, self.removed.deleted_until))

    def _expire(self, until: float) -> NeededFiles:
        """Remove main's snapshots that need files removed up to a time, in seconds since 1970.

        Return the files that the remaining snapshots protect.
        """
        assert self._last is not None
        if expired_snapshots(self._last.metadata, until, self._keep_hours, self.storage.limits.snapshots):
            self._write(RequestedCommit(expired_until=until))
        return self._protected.of(self._last.metadata)
