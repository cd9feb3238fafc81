"""A Delta table of a destination: atomic commits of files, properties and the position.

delta-rs reads the log and writes its checkpoints. This module writes commits itself, as a replacement of all rows needs
the table's properties and the position in the same commit. A commit is one JSON file that must not exist yet.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NoReturn, Self, cast

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from logicalrep.pipeline.formats.delta.actions import (
    LOAD,
    STOPPED,
    TABLE,
    WRITES_FEED,
    Action,
    add,
    change_file,
    features,
    is_same_table,
    metadata,
    other_features,
    other_properties,
    protocol,
    read_files,
    remove,
    retention_properties,
    unsupported_features,
)
from logicalrep.pipeline.formats.delta.change_feed import write_change_files
from logicalrep.pipeline.formats.delta.foreign_commits import LoggedCommit
from logicalrep.pipeline.formats.delta.log_entries import LogEntries, digest
from logicalrep.pipeline.formats.delta.removed_files import DeltaRemovedFiles
from logicalrep.pipeline.formats.delta.vectors import write_vectors
from logicalrep.pipeline.formats.removed_files import RemovedFile
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
from logicalrep.pipeline.storage.data_files import DataFile, file_sizes
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError, first_line
from logicalrep_runtime.scalars import Lsn

_URGENT_FACTOR = 2
"""The multiple of `log_checkpoint_commits` from which a checkpoint runs before further batches."""


class DeltaLog(StoredTable):
    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage, self.folder = storage, folder
        self._entries = LogEntries(storage, folder)
        self.version, self.files, self.load = -1, {}, ""
        self._head = Head(-1, None)
        self.removed = DeltaRemovedFiles(storage, folder)
        """The existing files that the last version does not need."""
        self.checkpoint = -1
        """The version of the log's last checkpoint; -1 without a checkpoint."""
        self._writer = uuid.uuid4().hex
        self._applied: dict[str, int] = {}
        self._reader: DeltaTable | None = None

    @classmethod
    def open(cls, storage: Storage, folder: str, version: int | None = None) -> Self | None:
        log = cls(storage, folder)
        with log._errors():
            try:
                reader = log._open_reader(version)
            except TableNotFoundError:
                return None
            except DeltaError as error:
                if version is not None and cls.open(storage, folder) is not None:
                    return None
                raise LogDamagedError(
                    f"the log of {storage.uri_of(folder)} is damaged: {first_line(error)}; restore it, or remove the "
                    "folder"
                ) from None
        log._take(reader)
        if unknown := unsupported_features(reader):
            raise UnsupportedTableError.of(
                log,
                f"another program changed {storage.uri_of(folder)} so that readers need {', '.join(unknown)}, which "
                "this version of logicalrep does not support",
            )
        log.checkpoint = log._entries.read_last_checkpoint()
        return log

    def _take(self, reader: DeltaTable) -> None:
        properties = reader.metadata().configuration
        if TABLE not in properties:
            raise ForeignTableError(
                f"{self.storage.uri_of(self.folder)} is a Delta table of another program: replicate to another "
                "destination, or remove it"
            )
        with self.storage.parsing(f"{self.folder}/_delta_log"):
            table, load = TableSpec.from_json(properties[TABLE]), properties[LOAD]
            files = {file.path: file for file in read_files(reader, table, self.storage, self.folder)}
        # The last read that may fail: the rows of one version with the number of another would be applied twice.
        commit = self.read_commit(reader.version())
        self.table, self.load, self.files = table, load, files
        self._reader = reader
        self._set_head(reader.version(), commit)
        self._applied.clear()

    @property
    def head(self) -> Head:
        return self._head

    def _set_head(self, version: int, commit: str | None) -> None:
        self.version, self._head = version, Head(version, commit)

    @classmethod
    def replace(cls, storage: Storage, folder: str, new: NewTable, previous: StoredTable | None) -> Self:
        assert previous is None or isinstance(previous, cls)
        try:
            stored = cls.open(storage, folder)
            if stored is not None and stored.load == new.load:
                return stored  # An earlier call succeeded, and its answer was lost.
        except UnsupportedTableError as error:
            stored = cast("Self", error.table)
        if stored is None:
            # Another program has removed the table.
            previous = None
        elif previous is not None and stored.version > previous.version:
            # The commit removes all rows, so changes of other programs do not matter.
            previous._follow_later_commits()
        log = cls(storage, folder)
        log.table, log.load = new.table, new.load
        id_: object = uuid.uuid4()
        other: dict[str, str] = {}
        if previous is not None:
            log.version, log.removed, log.checkpoint = previous.version, previous.removed, previous.checkpoint
            reader = previous._open_last_version()
            id_, other = reader.metadata().id, other_properties(reader)
            if previous.table.has_change_feed:
                other.pop(WRITES_FEED, None)
        properties = {**other, LOAD: new.load, **retention_properties(new.keep_hours)}
        old = [] if previous is None else list(previous.files.values())
        log.files = {file.path: file for file in old}
        stays = log.files.keys() & {file.path for file in new.files}
        files, old = ([file for file in table_files if file.path not in stays] for table_files in (new.files, old))
        first = [protocol(new.table), metadata(new.table, id_, properties, _now())]
        log._write(files, old, new.position, first, removed_table=None if previous is None else previous.table)
        return log

    def applied(self, application: str) -> Lsn | None:
        if application not in self._applied and self._reader is not None:
            lsn = self._reader.transaction_version(application)
            if lsn is not None:
                self._applied[application] = lsn
        return Lsn(self._applied[application]) if application in self._applied else None

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], position: Position) -> int:
        if not self.table.has_change_feed or not removed:
            # Readers of the feed take new files for inserted rows.
            self._write(added, removed, position, [])
            return self.version
        changes = write_change_files(self.storage, self.folder, self.table, added, removed)
        # Without a changed row, readers of the feed must not take the files for removed and inserted rows.
        self._write(added, removed, position, [], changes_data=bool(changes), changes=changes)
        return self.version

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        self._write(added, removed, None, [], changes_data=False)

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
        reader = self._open_last_version()
        current = reader.metadata()
        configuration = dict(current.configuration)
        if self.table.has_change_feed:
            configuration.pop(WRITES_FEED, None)
        first = [metadata(table, current.id, configuration, _now())]
        if features(table) != features(self.table):
            first.insert(0, protocol(table, other_features(reader, self.table)))
        changes_data = (bool(removed) and table.stored != self.table.stored) or position is not None
        self._write(added, removed, position, first, table=table, changes_data=changes_data)
        self.table = table

    def skip(self, skipped: Skipped, application: str) -> None:
        if skipped in self.table.skipped:
            return  # An earlier call succeeded, and its answer was lost.
        table = replace(self.table, skipped=(*self.table.skipped, skipped))
        current = self._open_last_version().metadata()
        properties = {name: value for name, value in current.configuration.items() if name != STOPPED}
        position = Position(application, Lsn(skipped.lsn))
        self._write([], [], position, [metadata(table, current.id, properties, _now())])
        self.table = table

    def write_stopped(self, reason: str) -> None:
        self._write_properties({STOPPED: reason})

    def set_retention(self, hours: float) -> None:
        self._write_properties(retention_properties(hours))

    def _write_properties(self, properties: Mapping[str, str]) -> None:
        current = self._open_last_version().metadata()
        if not properties.items() <= current.configuration.items():
            configuration = {**current.configuration, **properties}
            self._write([], [], None, [metadata(self.table, current.id, configuration, _now())])

    def _write(
        self,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        position: Position | None,
        first: Sequence[Action],
        *,
        table: TableSpec | None = None,
        removed_table: TableSpec | None = None,
        changes_data: bool = True,
        changes: Sequence[DataFile] = (),
    ) -> None:
        timestamp, added_spec, removed_spec = _now(), table or self.table, removed_table or self.table
        info = {
            "timestamp": timestamp,
            "operation": "REPLICATE" if changes_data else "OPTIMIZE",
            "engineInfo": "logicalrep",
        }
        info["writer"] = self._writer
        added = write_vectors(self.storage, self.folder, added)
        actions: list[Action] = [{"commitInfo": info}, *first]
        if position is not None:
            info["lsn"] = str(position.lsn)
            txn = {"appId": position.application, "version": int(position.lsn), "lastUpdated": timestamp}
            actions.append({"txn": txn})
        actions += [remove(removed_spec, file, timestamp, changes_data=changes_data) for file in removed]
        actions += [add(added_spec, file, timestamp, changes_data=changes_data) for file in added]
        actions += [change_file(self.table, file) for file in changes]
        data = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions).encode()
        version = self.version + 1
        if not self._entries.create(version, data):
            self._refuse_later_commits()
        try:
            later_versions = self._entries.later_versions(version, self.version)
        except DamagedError:
            # A commit without the commits before it is no table.
            self._entries.delete(version)
            raise
        if later_versions:
            # Upkeep may have deleted this version's entry before this process, which slept, created it again.
            if later_versions[0] != version + 1:
                self._entries.delete(version)
            self._refuse_later_commits()
        self._set_head(version, digest(data))
        removed_paths = {file.path for file in removed}
        self._set_files(
            {path: file for path, file in self.files.items() if path not in removed_paths}
            | {file.path: file for file in added}
        )
        # The files of the change feed are for readers of old versions.
        for file in changes:
            self.removed.add(RemovedFile(timestamp / 1000, file.path, file.size))
        if position is not None:
            self._applied[position.application] = int(position.lsn)

    # Commits of other processes and programs

    def refuse_unknown_commits(self) -> None:
        if self._entries.later_versions(self.version, self.version):
            self._refuse_later_commits()

    def _refuse_later_commits(self) -> NoReturn:
        """Take the state of the later commits, and raise an error, as the refused commit does not follow them.

        Raises:
            StorageError: this process wrote the commits, or they left the rows unchanged: a retry continues from them.
            DamagedError: another program has changed the rows.
            WriterError: another replicate process has committed.
        """
        uri = self.storage.uri_of(self.folder)
        foreign = self._follow_later_commits()
        if foreign is None:
            raise StorageError(f"{uri}: the answer to an earlier commit was lost, but the commit exists")
        if foreign.changes is not None:
            raise DamagedError(f"{uri}: {foreign.changes}")
        raise StorageError(
            f"{uri}: another program committed {foreign.operation} without changing rows: replicate continues from it"
        )

    def _follow_later_commits(self) -> LoggedCommit | None:
        """Take the state of the commits after the version; return a commit of another program, None without one.

        A commit that changes the table is preferred. Raises WriterError for a commit of another replicate process.
        """
        foreign: LoggedCommit | None = None
        last = self.version
        for version in self._entries.versions_after(self.version):
            logged = self._logged(self._entries.read(version) or b"")
            if logged.is_ours and logged.writer != self._writer:
                raise WriterError(
                    f"{self.storage.uri_of(self.folder)} has a version {version} that this process did not write: "
                    "another process replicates to the same destination; stop one of them"
                )
            if version > last + 1:
                logged = LoggedCommit.deleted(last)
            if not logged.is_ours and (foreign is None or foreign.changes is None):
                foreign = logged
            last = version
        previous_files = self.files
        with self._errors():
            self._take(self._open_reader())
        files, self.files = self.files, previous_files
        self._set_files(files)
        return foreign

    def _logged(self, data: bytes) -> LoggedCommit:
        return LoggedCommit.of(data, partial(is_same_table, table=self.table, load=self.load))

    def _set_files(self, files: dict[str, DataFile]) -> None:
        self.removed.record_commit(file_sizes(self.files.values()), file_sizes(files.values()))
        self.files = files

    def read_commit(self, version: int) -> str | None:
        data = self._entries.read(version)
        return None if data is None else digest(data)

    def foreign_change(self, proven: int) -> str | None:
        for version in range(self.version, proven, -1):
            data = self._entries.read(version)
            if data is None:
                return f"its log no longer has the commit of version {version}"
            logged = self._logged(data)
            if logged.is_ours:
                return None
            if logged.changes is not None:
                return logged.changes
        return None

    # Upkeep: checkpoints of the log, and the removal of old files and old log entries

    @property
    def opens_slowly(self) -> bool:
        return self.version - self.checkpoint >= self.storage.limits.log_checkpoint_commits

    def is_upkeep_due(self, keep_hours: float) -> bool:
        return self.opens_slowly or not self.removed.is_complete or self._has_surplus(keep_hours)

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        return (
            self.version - self.checkpoint >= _URGENT_FACTOR * self.storage.limits.log_checkpoint_commits
            or not self.removed.is_complete
            or self._has_surplus(keep_hours)
        )

    def _has_surplus(self, keep_hours: float) -> bool:
        return self.removed.has_surplus(sum(file.size for file in self.files.values()), keep_hours)

    def maintain(self, keep_hours: float) -> None:
        if not self.removed.is_complete:
            live = file_sizes(self.files.values())
            self.removed.recall(self.version, live, live, keep_hours)
        if self.opens_slowly:
            self.write_checkpoint()
        self.removed.delete_surplus(sum(file.size for file in self.files.values()), keep_hours)

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the log, and remove entries before the checkpoint that are older than the retention."""
        with self._errors():
            reader = self._open_last_version()
            reader.create_checkpoint()
            reader.cleanup_metadata()
        self.removed.save(self.version)
        self.checkpoint = self.version

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except TableNotFoundError:
            raise DamagedError(f"{self.storage.uri_of(self.folder)} no longer exists") from None
        except (DeltaError, OSError) as error:
            raise StorageError(f"{self.storage.uri_of(self.folder)}: {first_line(error)}") from None

    def _open_reader(self, version: int | None = None) -> DeltaTable:
        options = dict(self.storage.storage_options)
        return DeltaTable(self.storage.uri_of(self.folder), version=version, storage_options=options)

    def _open_last_version(self) -> DeltaTable:
        with self._errors():
            if self._reader is None:
                self._reader = self._open_reader()
            elif self._reader.version() < self.version:
                self._reader.update_incremental()
            return self._reader


def _now() -> int:
    return time.time_ns() // 1_000_000
