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
from datetime import UTC, datetime
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from logicalrep.tables.delta.data_files import DataFile
from logicalrep.tables.delta.place import Place, PlaceError, below, first_line
from logicalrep.tables.delta.removed_files import RemovedFile, RemovedFiles, commit_path
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.delta.statistics import Statistics, statistics_properties
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_TABLE, _LOAD, _KEEP = "logicalrep.table", "logicalrep.load", "delta.deletedFileRetentionDuration"
_STOPPED = "logicalrep.stopped"
_LOG_KEEP = "delta.logRetentionDuration"
_NOTED = 3600
"""The seconds for which checkpoints have removed files: `RemovedFiles` has notes of its own."""


class WriterError(LogicalRepError, RuntimeError):
    """A commit that another writer has made meanwhile."""

    code = "PLACE_HAS_WRITER"


def application_id(system_identifier: int, timeline: int, load: str) -> str:
    """Return the application id of a table's transactions: LSNs of another server or load never count as its own."""
    return f"logicalrep/{system_identifier}/{timeline}/{load}"


class DeltaLog:
    """A replicated Delta table, which nobody else writes; kept open between commits."""

    def __init__(self, place: Place, folder: str) -> None:
        """Take the table's folder; `open` and `replace` make one."""
        self.place = place
        self.folder = folder
        self.version = -1
        """The version of the last commit."""
        self.files: dict[str, DataFile] = {}
        """The table's data files by their paths."""
        self.load = ""
        """The load that the rows began with."""
        self.table: ReplicatedTable
        """The description of the table."""
        self.removed = RemovedFiles(place, folder)
        """The files that are in the last version no more and still there."""
        self.checkpoint = -1
        """The version of the last checkpoint."""
        self._writer = uuid.uuid4().hex
        self._applied: dict[str, int] = {}
        self._reader: DeltaTable | None = None

    @classmethod
    def open(cls, place: Place, folder: str) -> Self | None:
        """Return a table; None if there is none.

        Raises PlaceError if the log cannot be read.
        """
        log = cls(place, folder)
        with log._errors():
            try:
                reader = log._opened()
            except TableNotFoundError:
                return None
        log._take(reader)
        last = place.parse(f"{folder}/_delta_log/_last_checkpoint", lambda content: int(content["version"]))
        log.checkpoint = -1 if last is None else last
        return log

    def _take(self, reader: DeltaTable) -> None:
        properties = reader.metadata().configuration
        if _TABLE not in properties:
            raise WriterError(
                f"{self.place.uri_of(self.folder)} is a Delta table of another program: replicate to another place, or "
                "remove it",
                code="PLACE_DIFFERS",
            )
        with self.place.parsing(f"{self.folder}/_delta_log"):
            table, load = ReplicatedTable.from_json(properties[_TABLE]), properties[_LOAD]
            files = {file.path: file for file in _files(reader) if below(self.folder, file.path)}
        self.table, self.load, self.files = table, load, files
        self._reader = reader
        self.version = reader.version()
        self._applied.clear()

    @classmethod
    def replace(
        cls,
        place: Place,
        folder: str,
        table: ReplicatedTable,
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

        Raises WriterError and PlaceError as `commit` does.
        """
        there = cls.open(place, folder)
        if there is not None and there.load == load:
            return there  # A try that seemed to fail was successful.
        log = cls(place, folder)
        log.table, log.load = table, load
        if before is not None:
            log.version, log.removed, log.checkpoint = before.version, before.removed, before.checkpoint
        properties = {
            _LOAD: load,
            _KEEP: f"interval {min(int(keep_hours * 3600), _NOTED)} seconds",
            _LOG_KEEP: f"interval {int(keep_hours * 3600)} seconds",
        }
        metadata = cls._metadata(
            table, str(uuid.uuid4() if before is None else before._fresh().metadata().id), properties
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
        """Add and remove files, and note the LSN, in one commit. Returns the version.

        Raises:
            WriterError: somebody else has committed meanwhile.
            PlaceError: the place cannot be written; or an earlier commit of this one is there, whose answer was
                lost. `applied` and `files` have it then.
        """
        self._write(added, removed, application, lsn, [])
        return self.version

    def describe(
        self, table: ReplicatedTable, added: Sequence[DataFile] = (), removed: Sequence[DataFile] = ()
    ) -> None:
        """Note another description of the table, in one commit.

        Args:
            table: the description.
            added: the files with its columns, or files that are there with other statistics.
            removed: the files in whose place they are.
        """
        if self.table == table:
            return  # A try that seemed to fail was successful.
        before = self._fresh().metadata()
        first: list[Mapping[str, object]] = [{"metaData": self._metadata(table, str(before.id), before.configuration)}]
        if _has_ntz_columns(table) and not _has_ntz_columns(self.table):
            first.insert(0, _protocol(table))
        self._write(added, removed, None, None, first, changes_data=bool(removed))
        self.table = table

    def note_stopped(self, reason: str) -> None:
        """Note in the table's properties why it stands still, and which LSN it has; the next load removes the note."""
        before = self._fresh().metadata()
        properties = {**before.configuration, _STOPPED: reason}
        if before.configuration != properties:
            self._write([], [], None, None, [{"metaData": self._metadata(self.table, str(before.id), properties)}])

    def commit_merged(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Put files in the place of others with the same rows."""
        self._write(added, removed, None, None, [], changes_data=False)

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the log, and remove the log's entries before it that are too old to be read."""
        with self._errors():
            reader = self._fresh()
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
        if not self.place.create(commit_path(self.folder, version), text.encode()):
            self._refuse_others(version)
        self.version = version
        for file in removed:
            del self.files[file.path]
            self.removed.add(RemovedFile(now / 1000, file.path, file.size))
        self.files |= {file.path: file for file in added}
        if application is not None and lsn is not None:
            self._applied[application] = int(lsn)

    def _refuse_others(self, version: int) -> None:
        """Look whose a commit is that is there already, and raise an error."""
        there = self.place.read(commit_path(self.folder, version))
        writer = None if there is None else json.loads(there.splitlines()[0])["commitInfo"].get("writer")
        if writer != self._writer:
            raise WriterError(
                f"{self.place.uri_of(self.folder)} has a version {version} that this process did not write: another "
                "process replicates to the same place; stop it"
            )
        before = self.files
        with self._errors():
            self._take(self._opened())
        gone = [file for path, file in before.items() if path not in self.files]
        for file in gone:
            self.removed.add(RemovedFile(time.time(), file.path, file.size))
        raise PlaceError(f"{self.place.uri_of(self.folder)}: the answer to an earlier commit was lost; it is there")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            raise PlaceError(f"{self.place.uri_of(self.folder)}: {first_line(error)}") from None

    @staticmethod
    def _metadata(table: ReplicatedTable, id_: str, properties: Mapping[str, str]) -> Mapping[str, object]:
        kept = {name: value for name, value in properties.items() if not name.startswith("delta.dataSkipping")}
        return {
            "id": id_,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema.from_arrow(table.stored).to_json(),
            "partitionColumns": [],
            "configuration": {**kept, **statistics_properties(table.stored), _TABLE: table.to_json()},
            "createdTime": _now(),
        }

    def _opened(self) -> DeltaTable:
        return DeltaTable(self.place.uri_of(self.folder), storage_options=dict(self.place.storage_options))

    def _fresh(self) -> DeltaTable:
        """Return a reader of the last version."""
        if self._reader is None:
            self._reader = self._opened()
        elif self._reader.version() < self.version:
            self._reader.update_incremental()
        return self._reader


def _now() -> int:
    return time.time_ns() // 1_000_000


def _protocol(table: ReplicatedTable) -> Mapping[str, object]:
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if _has_ntz_columns(table):
        features = ["timestampNtz"]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol |= {"readerFeatures": features, "writerFeatures": features}
    return {"protocol": protocol}


def _has_ntz_columns(table: ReplicatedTable) -> bool:
    return any(_has_ntz(field.type) for field in table.stored)


def _has_ntz(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return type_.tz is None
    return any(_has_ntz(type_.field(number).type) for number in range(type_.num_fields))


def _files(reader: DeltaTable) -> Iterable[DataFile]:
    actions = pa.table(reader.get_add_actions(flatten=True))
    for row in actions.to_pylist():
        least, greatest, nulls = (
            {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
            for prefix in ("min.", "max.", "null_count.")
        )
        yield DataFile(
            path=row["path"],
            size=row["size_bytes"],
            rows=row["num_records"],
            statistics=Statistics(
                least={name: _kept(value) for name, value in least.items() if value is not None},
                greatest={name: _kept(value) for name, value in greatest.items() if value is not None},
                nulls={name: value for name, value in nulls.items() if value is not None},
            ),
        )


def _kept(value: object) -> object:
    # Times without a zone are UTC to some readers of the statistics.
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
