"""One Delta table's log: what it has, and commits of files, properties and position in one step.

delta-rs reads the log and writes its checkpoints. Commits are written here, since only so can a replacement of all rows
carry the table's properties and the position in the same commit; a commit is one JSON file that must not exist yet.
Source: "Actions" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from logicalrep.pipeline.formats.delta.foreign_commits import OthersCommit
from logicalrep.pipeline.formats.delta.removed_files import RemovedFile, RemovedFiles, commit_path
from logicalrep.pipeline.spec.table_spec import Skipped, TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, count_rows, is_own_name
from logicalrep.pipeline.storage.statistics import Statistics, statistics_properties
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError, below, first_line
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_TABLE, _LOAD, _KEEP = "logicalrep.table", "logicalrep.load", "delta.deletedFileRetentionDuration"
_STOPPED = "logicalrep.stopped"
_LOG_KEEP = "delta.logRetentionDuration"


class WriterError(LogicalRepError, RuntimeError):
    """A commit that another process of ours has made meanwhile."""

    code = "DESTINATION_HAS_WRITER"


class LogDamagedError(LogicalRepError, RuntimeError):
    """A Delta table whose log cannot be read, so that nothing can be committed to it."""

    code = "TABLE_LOG_DAMAGED"


class ForeignTableError(LogicalRepError, RuntimeError):
    """A Delta table that another program has made, or that is a copy of another server's table."""

    code = "DESTINATION_DIFFERS"


def application_id(system_identifier: int, timeline: int, load: str) -> str:
    """Return the application id of a table's transactions: LSNs of another server or load never count as its own."""
    return f"logicalrep/{system_identifier}/{timeline}/{load}"


class DeltaLog:
    """A replicated Delta table, whose rows nobody else changes; kept open between commits."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """Take the table's folder; `open` and `replace` make one."""
        self.storage = storage
        self.folder = folder
        self.version = -1
        """The version of the last commit."""
        self.files: dict[str, DataFile] = {}
        """The table's data files by their paths."""
        self.load = ""
        """The load that the rows began with."""
        self.table: TableSpec
        """The description of the table."""
        self.removed = RemovedFiles(storage, folder)
        """The files that are in the last version no more and still there."""
        self.checkpoint = -1
        """The version of the last checkpoint."""
        self._writer = uuid.uuid4().hex
        self._applied: dict[str, int] = {}
        self._reader: DeltaTable | None = None

    @classmethod
    def open(cls, storage: Storage, folder: str) -> Self | None:
        """Return a table; None if there is none.

        Raises:
            LogDamagedError: the log is damaged.
            ForeignTableError: it is a table of another program.
            StorageError: the log cannot be read now.
        """
        log = cls(storage, folder)
        with log._errors():
            try:
                reader = log._open_reader()
            except TableNotFoundError:
                return None
            except DeltaError as error:
                raise LogDamagedError(
                    f"the log of {storage.uri_of(folder)} is damaged: {first_line(error)}; restore it, or remove the "
                    "folder"
                ) from None
        log._take(reader)
        last = storage.parse(f"{folder}/_delta_log/_last_checkpoint", lambda content: int(content["version"]))
        log.checkpoint = -1 if last is None else last
        return log

    def _take(self, reader: DeltaTable) -> None:
        properties = reader.metadata().configuration
        if _TABLE not in properties:
            raise ForeignTableError(
                f"{self.storage.uri_of(self.folder)} is a Delta table of another program: replicate to another "
                "destination, or "
                "remove it"
            )
        with self.storage.parsing(f"{self.folder}/_delta_log"):
            table, load = TableSpec.from_json(properties[_TABLE]), properties[_LOAD]
            files = {file.path: file for file in _files(reader, self.storage, self.folder)}
        self.table, self.load, self.files = table, load, files
        self._reader = reader
        self.version = reader.version()
        self._applied.clear()

    @classmethod
    def replace(
        cls,
        storage: Storage,
        folder: str,
        table: TableSpec,
        files: Sequence[DataFile],
        application: str,
        lsn: Lsn,
        *,
        load: str,
        keep_hours: float,
        before: DeltaLog | None,
    ) -> Self:
        """Make a table of these files, or replace all rows, columns and properties of the one before, in one commit.

        Files of the one before may be among them.

        Raises WriterError and StorageError as `commit` does.
        """
        there = cls.open(storage, folder)
        if there is not None and there.load == load:
            return there  # The earlier try had succeeded, though its answer was lost.
        if there is not None and before is not None and there.version > before.version:
            # All of its rows go, whatever another program has done to them.
            before._follow_others(before.version + 1)
        log = cls(storage, folder)
        log.table, log.load = table, load
        if before is not None:
            log.version, log.removed, log.checkpoint = before.version, before.removed, before.checkpoint
        properties = {_LOAD: load, **_kept_for(keep_hours)}
        metadata = cls._metadata(
            table, str(uuid.uuid4() if before is None else before._open_last_version().metadata().id), properties
        )
        old = [] if before is None else list(before.files.values())
        log.files = {file.path: file for file in old}
        stays = log.files.keys() & {file.path for file in files}
        files, old = ([file for file in each if file.path not in stays] for each in (files, old))
        log._write(files, old, application, lsn, [_protocol(table), {"metaData": metadata}])
        return log

    def applied(self, application: str) -> Lsn | None:
        """Return the LSN up to which an application's commits are in the table; None if it has made none."""
        if application not in self._applied and self._reader is not None:
            found = self._reader.transaction_version(application)
            if found is not None:
                self._applied[application] = found
        return Lsn(self._applied[application]) if application in self._applied else None

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], application: str, lsn: Lsn) -> int:
        """Add and remove files, and record the LSN, in one commit. Returns the version.

        Raises:
            WriterError: somebody else has committed meanwhile.
            StorageError: the destination cannot be written; or an earlier commit of this one is there, whose answer was
                lost. `applied` and `files` have it then.
        """
        self._write(added, removed, application, lsn, [])
        return self.version

    def describe(self, table: TableSpec, added: Sequence[DataFile] = (), removed: Sequence[DataFile] = ()) -> None:
        """Note another description of the table, in one commit.

        Args:
            table: the description.
            added: the files with its columns, or files that are there with other statistics.
            removed: the files in whose place they are.
        """
        if self.table == table:
            return  # The earlier try had succeeded, though its answer was lost.
        before = self._open_last_version().metadata()
        first: list[Mapping[str, object]] = [{"metaData": self._metadata(table, str(before.id), before.configuration)}]
        if _has_ntz_columns(table) and not _has_ntz_columns(self.table):
            first.insert(0, _protocol(table))
        self._write(added, removed, None, None, first, changes_data=bool(removed))
        self.table = table

    def write_stopped(self, reason: str) -> None:
        """Write why the table is stopped, and its LSN, into its properties; the next load removes them."""
        before = self._open_last_version().metadata()
        properties = {**before.configuration, _STOPPED: reason}
        if before.configuration != properties:
            self._write([], [], None, None, [{"metaData": self._metadata(self.table, str(before.id), properties)}])

    def keep_for(self, hours: float) -> None:
        """Write into the table's properties for how long its old versions can be read, if that is not there yet.

        Other programs that VACUUM the table keep to it.
        """
        before = self._open_last_version().metadata()
        properties = {**before.configuration, **_kept_for(hours)}
        if before.configuration != properties:
            self._write([], [], None, None, [{"metaData": self._metadata(self.table, str(before.id), properties)}])

    def skip(self, skipped: Skipped, application: str) -> None:
        """Note a commit of the server that is left out, and its LSN, in one commit: the table never gets its rows.

        The property that says why the table is stopped goes. Arguments and errors are otherwise those of `commit`.
        """
        if skipped in self.table.skipped:
            return  # The earlier try had succeeded, though its answer was lost.
        table = replace(self.table, skipped=(*self.table.skipped, skipped))
        before = self._open_last_version().metadata()
        properties = {name: value for name, value in before.configuration.items() if name != _STOPPED}
        metadata = self._metadata(table, str(before.id), properties)
        self._write([], [], application, Lsn(skipped.lsn), [{"metaData": metadata}])
        self.table = table

    def commit_merged(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Put files in the place of others with the same rows."""
        self._write(added, removed, None, None, [], changes_data=False)

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the log, and remove the log's entries before it that are too old to be read."""
        with self._errors():
            reader = self._open_last_version()
            reader.create_checkpoint()
            reader.cleanup_metadata()
        self.removed.save(self.version)
        self.checkpoint = self.version

    def _write(
        self,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        application: str | None,
        lsn: Lsn | None,
        first: Sequence[Mapping[str, object]],
        *,
        changes_data: bool = True,
    ) -> None:
        now = _now()
        info = {"timestamp": now, "operation": "REPLICATE" if changes_data else "OPTIMIZE", "engineInfo": "logicalrep"}
        info["writer"] = self._writer
        actions: list[Mapping[str, object]] = [{"commitInfo": info}, *first]
        if application is not None and lsn is not None:
            info["lsn"] = str(lsn)
            actions.append({"txn": {"appId": application, "version": int(lsn), "lastUpdated": now}})
        for file in removed:
            actions.append(
                {
                    "remove": {
                        "path": file.path,
                        "deletionTimestamp": now,
                        "dataChange": changes_data,
                        "extendedFileMetadata": True,
                        "partitionValues": {},
                        "size": file.size,
                    }
                }
            )
        for file in added:
            actions.append(
                {
                    "add": {
                        "path": file.path,
                        "partitionValues": {},
                        "size": file.size,
                        "modificationTime": now,
                        "dataChange": changes_data,
                        "stats": file.stats,
                    }
                }
            )
        text = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)
        version = self.version + 1
        if not self.storage.create(commit_path(self.folder, version), text.encode()):
            self._refuse_others(version)
        self.version = version
        for file in removed:
            del self.files[file.path]
            self.removed.add(RemovedFile(now / 1000, file.path, file.size))
        self.removed.keep(file.path for file in added)
        self.files |= {file.path: file for file in added}
        if application is not None and lsn is not None:
            self._applied[application] = int(lsn)

    def refuse_others(self) -> None:
        """Raise what `commit` raises if there is a commit that this process does not know; do nothing without one."""
        if self.storage.read(commit_path(self.folder, self.version + 1)) is not None:
            self._refuse_others(self.version + 1)

    def _refuse_others(self, version: int) -> None:
        """Look whose a commit is that is there already, and raise an error: what was to be committed is not right then.

        Raises:
            StorageError: it is this process's own, or has the same rows: the next try goes on from it.
            DamagedError: another program has changed the rows.
            WriterError: another process of ours has made it.
        """
        uri = self.storage.uri_of(self.folder)
        found = self._follow_others(version)
        if found is None:
            raise StorageError(f"{uri}: the answer to an earlier commit was lost; it is there")
        if found.changes is not None:
            raise DamagedError(f"{uri}: {found.changes}")
        raise StorageError(
            f"{uri}: {found.operation} of another program is there, with the same rows; going on from it"
        )

    def _follow_others(self, version: int) -> OthersCommit | None:
        """Go on from the commits that are there from a version on; return one of another program, if there is any.

        Of several it is one that changes the table, if any does. Raises WriterError for those of other processes.
        """
        found: OthersCommit | None = None
        while (data := self.storage.read(commit_path(self.folder, version))) is not None:
            there = OthersCommit.of(data)
            if there.is_ours and there.writer != self._writer:
                raise WriterError(
                    f"{self.storage.uri_of(self.folder)} has a version {version} that this process did not write: "
                    "another process replicates to the same destination; stop it"
                )
            if not there.is_ours and (found is None or found.changes is None):
                found = there
            version += 1
        before = self.files
        with self._errors():
            self._take(self._open_reader())
        for path, file in before.items():
            if path not in self.files:
                self.removed.add(RemovedFile(time.time(), path, file.size))
        return found

    def changed_by_others(self, known: int) -> str | None:
        """Return how another program has changed the table after its last commit of ours; None if it has not.

        Args:
            known: a version up to which that is known already; -1 for none.
        """
        for version in range(self.version, known, -1):
            data = self.storage.read(commit_path(self.folder, version))
            if data is None:
                return f"what was committed as version {version} is not in its log any more"
            there = OthersCommit.of(data)
            if there.is_ours:
                return None
            if there.changes is not None:
                return there.changes
        return None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            raise StorageError(f"{self.storage.uri_of(self.folder)}: {first_line(error)}") from None

    @staticmethod
    def _metadata(table: TableSpec, id_: str, properties: Mapping[str, str]) -> Mapping[str, object]:
        kept = {name: value for name, value in properties.items() if not name.startswith("delta.dataSkipping")}
        return {
            "id": id_,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema.from_arrow(table.stored).to_json(),
            "partitionColumns": [],
            "configuration": {**kept, **statistics_properties(table.stored), _TABLE: table.to_json()},
            "createdTime": _now(),
        }

    def _open_reader(self) -> DeltaTable:
        return DeltaTable(self.storage.uri_of(self.folder), storage_options=dict(self.storage.storage_options))

    def _open_last_version(self) -> DeltaTable:
        """Return a reader of the last version."""
        if self._reader is None:
            self._reader = self._open_reader()
        elif self._reader.version() < self.version:
            self._reader.update_incremental()
        return self._reader


def _kept_for(hours: float) -> dict[str, str]:
    duration = f"interval {int(hours * 3600)} seconds"
    return {_KEEP: duration, _LOG_KEEP: duration}


def _now() -> int:
    return time.time_ns() // 1_000_000


def _protocol(table: TableSpec) -> Mapping[str, object]:
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if _has_ntz_columns(table):
        features = ["timestampNtz"]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol |= {"readerFeatures": features, "writerFeatures": features}
    return {"protocol": protocol}


def _has_ntz_columns(table: TableSpec) -> bool:
    return any(_has_ntz(field.type) for field in table.stored)


def _has_ntz(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return type_.tz is None
    return any(_has_ntz(type_.field(number).type) for number in range(type_.num_fields))


def _files(reader: DeltaTable, storage: Storage, folder: str) -> Iterable[DataFile]:
    actions = pa.table(reader.get_add_actions(flatten=True))
    for row in actions.to_pylist():
        least, greatest, nulls = (
            {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
            for prefix in ("min.", "max.", "null_count.")
        )
        if not is_own_name(row["path"]):
            # Bounds of other programs may be cut texts, or times of fewer digits.
            least, greatest = (
                {name: each for name, each in of.items() if type(each) is int} for of in (least, greatest)
            )
        rows = row["num_records"]
        below(folder, row["path"])
        file = DataFile(
            path=row["path"],
            size=row["size_bytes"],
            rows=0 if rows is None else rows,
            statistics=Statistics(
                least={name: _kept(value) for name, value in least.items() if value is not None},
                greatest={name: _kept(value) for name, value in greatest.items() if value is not None},
                nulls={name: value for name, value in nulls.items() if value is not None},
            ),
        )
        yield file if rows is not None else replace(file, rows=count_rows(storage, folder, file))


def _kept(value: object) -> object:
    # Times without a zone are UTC to some readers of the statistics.
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
