"""The loading of tables: a snapshot for a group of them, and the copying of their rows under it.

The snapshot is that of a temporary slot, whose position tells which changes come after it. No lock outlives the reading
of a part, so that the application's statements wait for no load; a table that is truncated, rewritten or altered
meanwhile is loaded again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psycopg

from logicalrep.postgres.retries import TRANSIENT
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, hold, temporary_snapshot
from logicalrep.postgres.table_parts import part_queries
from logicalrep.tables.delta.data_files import DataFile
from logicalrep.tables.delta.place import Place, PlaceError
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.errors import OF_ONE_TABLE
from logicalrep.tables.load.copying import Part, copy
from logicalrep.tables.load.definitions import described
from logicalrep.tables.report import Report
from logicalrep.tables.settings import ReplicateSettings
from logicalrep.tables.tasks import Tasks
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_GROUP = 8
"""The most tables of one snapshot: it holds back the server's clean-up, and a load that is killed begins anew."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table whose rows are copied into files, which are in no version of the table yet."""

    name: TableName
    table: ReplicatedTable
    position: Lsn
    """The changes that committed at or after it come after these rows."""
    files: list[DataFile]
    load: str
    """The load's own name."""


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """A table that was not loaded."""

    name: TableName
    reason: str
    again: bool
    """Whether another try may succeed."""


class _Ended(Exception):  # noqa: N818
    """The load is to end."""


class Loading:
    """The loading of tables of one server into one place."""

    def __init__(
        self,
        settings: ReplicateSettings,
        place: Place,
        publications: tuple[str, ...],
        tasks: Tasks,
        report: Report,
        stop: threading.Event,
    ) -> None:
        """Take the server, the place, the publications and the runner of the copying; `stop` ends a load."""
        self._settings = settings
        self._place = place
        self._publications = publications
        self._tasks = tasks
        self._report = report
        self._stop = stop

    def load(self, folders: Mapping[TableName, str]) -> Iterator[Loaded | NotLoaded]:
        """Load tables into their folders; yield each as soon as its rows are copied.

        The tables' changes have to be kept from before this call on: the snapshot is made in it.
        """
        names = list(folders)
        for start in range(0, len(names), _GROUP):
            group = names[start : start + _GROUP]
            left = set(group)
            try:
                with temporary_snapshot(self._settings.connection, self._wait) as snapshot:
                    for name in group:
                        result = self._load(snapshot, name, folders[name])
                        left.remove(name)
                        yield result
            except _Ended:
                return
            except TRANSIENT as error:
                for name in left:
                    yield NotLoaded(name, str(error).strip(), again=True)

    def _wait(self, text: str) -> None:
        if self._stop.is_set():
            raise _Ended
        self._report.waiting(text)

    def _load(self, snapshot: Snapshot, name: TableName, folder: str) -> Loaded | NotLoaded:
        began = time.monotonic()
        try:
            with self._settings.connection.connect() as connection:
                hold(connection, snapshot)
                table = described(connection, name, self._publications)
                if table is None:
                    return NotLoaded(name, f"{name} did not exist when the snapshot was made", again=True)
                queries = part_queries(connection, table.relation, self._publications)
                (estimate,) = connection.execute(_ESTIMATE, (table.relation.relation_id,)).fetchone() or (0,)
            self._report.loading(name, int(estimate))
            parts = [
                Part(self._settings.connection, snapshot, table, query, self._place, folder, self._settings.load_rate)
                for query in queries
            ]
            files: list[DataFile] = []
            for start in range(0, len(parts), self._settings.load_sessions):
                if self._stop.is_set():
                    raise _Ended
                for copied in self._tasks.run(copy, parts[start : start + self._settings.load_sessions]):
                    files += copied
                    self._report.copied(name, sum(file.rows for file in copied))
        except (SnapshotError, PlaceError, psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable) as error:
            return NotLoaded(name, str(error), again=True)
        except OF_ONE_TABLE as error:
            return NotLoaded(name, str(error), again=False)
        self._report.loaded(name, sum(file.rows for file in files), time.monotonic() - began)
        return Loaded(name, table, snapshot.lsn, files, secrets.token_hex(8))


# The server's estimate of a table's rows, with its partitions.
_ESTIMATE = """
WITH RECURSIVE files AS (
    SELECT oid, relkind, reltuples FROM pg_class WHERE oid = %s
    UNION ALL
    SELECT class.oid, class.relkind, class.reltuples
    FROM files JOIN pg_inherits ON files.relkind = 'p' AND inhparent = files.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT coalesce(sum(greatest(reltuples, 0)) FILTER (WHERE relkind <> 'p'), 0)::bigint FROM files
"""


__all__ = ["Loaded", "Loading", "NotLoaded"]
