"""The copy of tables under one exported snapshot: rows have exactly the changes that committed before its LSN.

A lock lasts only while a range of rows is read. So a table may be truncated, rewritten or altered during the copy: then
the copy restarts under a later snapshot.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import psycopg

from logicalrep.observe.events import CopyEnded, CopyStarted, RowsCopied, WaitReported
from logicalrep.observe.figures import LoadProgress
from logicalrep.pipeline.catalog.definitions import CatalogTable, query_catalog_tables
from logicalrep.pipeline.catalog.loadable import refuse_unloadable
from logicalrep.pipeline.catalog.lost_partitions import LostPartitions
from logicalrep.pipeline.catalog.partitions import query_unproven_partitions
from logicalrep.pipeline.load.copying import (
    CopiedPart,
    CopyTask,
    copy,
)
from logicalrep.pipeline.load.deleted_keys import (
    KeysTask,
    WantedPart,
    check_bounds,
    check_condition,
    find_deleted_keys,
    split_files,
)
from logicalrep.pipeline.load.renewal import Renewal
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.fitting import with_file_partitions_of
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.storage.data_files import DataFile, with_columns
from logicalrep.pipeline.storage.storage import StorageError
from logicalrep.pipeline.table_errors import is_retriable, is_table_error, log_unexpected, reason_of
from logicalrep.postgres.retries import LOCKED, Ended, Wait
from logicalrep.postgres.server import Connection
from logicalrep.postgres.sessions.reused_sessions import ReusedSessions
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, hold, hold_temporary_snapshot
from logicalrep.postgres.table_rows.keys import query_tree
from logicalrep.postgres.table_rows.parts import gathered_parts, query_parts
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, TimestampTz

_RANGE_SECONDS = 0.25
"""The most seconds of one range under `load_rate`: smaller ranges keep each session near its rate."""
_CHECK_INTERVAL = 0.5
"""The most seconds until a load notices that it is no longer wanted, or that the process exits."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A load of all rows of a table, of its new partitions, or of a part."""

    folder: str
    """The table's folder at the destination, for the files of the copied rows."""
    oid: int
    """The table's OID: another table may have its name at the snapshot."""
    requested_at: float = field(default_factory=time.monotonic)
    """The monotonic time of the request, in seconds."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The attribute numbers that masked and omitted columns must have, by name: another column may have the name."""
    last_spec: TableSpec | None = None
    """The copy's description; None for a new table."""
    proven_spec: TableSpec | None = None
    """The copy's description if only new partitions or a part are loaded; None for all rows."""
    part: WantedPart | LostPartitions | None = None
    """The only part to load; None for all rows, or for new partitions."""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """Copied rows of a table, in files that no commit has yet."""

    name: TableName
    table: TableSpec
    position: Lsn
    """The snapshot's LSN: the rows have all commits before it, and none from it on."""
    files: list[DataFile]
    load: str
    """The id of the load, a random text."""
    taken: TimestampTz
    """A time shortly before the snapshot, by the server's clock: no change after the snapshot committed earlier."""
    catalog_table: CatalogTable | None = None
    """The table in the snapshot's catalog, if only some rows are loaded; None for all rows."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    """The number of values that their column's type cannot hold, by column name."""
    part: RequestedPart | LostPartitions | None = None
    """The loaded part; None for all rows, or for new partitions."""
    deleted_keys: Sequence[DataFile] = ()
    """Files with the stored keys of the loaded part that the server lacks."""

    def described(self, table: TableSpec) -> CopiedTable:
        """Return the same rows under another description, with file statistics of the description's columns."""
        files = self.files
        if not table.settings.abilities.has_field_ids:
            texts = {column.name for column in table.written if column.has_texts}
            files = [with_columns(file, table.stored, texts) for file in files]
        return replace(self, table=table, files=files)


@dataclass(frozen=True, slots=True)
class CopyFailed:
    """A table that was not copied."""

    name: TableName
    reason: str
    may_retry: bool
    is_own: bool = True
    """Whether the cause is the table itself. If so, the try counts; waits for the server or the store have no limit."""
    is_behind: bool = False
    """Whether the table must apply its buffered changes before the next try."""


@dataclass(slots=True)
class _RunningCopy:
    """The tasks of a table's copy, and the results so far."""

    name: TableName
    table: TableSpec
    catalog_table: CatalogTable | None
    part: RequestedPart | LostPartitions | None
    parts: list[CopyTask | KeysTask]
    nbytes: int
    """The estimated bytes of the rows on the server's disk."""
    began: float
    pending_parts: int
    """The number of `parts` without a result."""
    files: list[DataFile] = field(default_factory=list)
    unfit: Counter[str] = field(default_factory=Counter)
    deleted_keys: list[DataFile] = field(default_factory=list)


class SnapshotCopy:
    """Copies tables of one server into one destination; several threads may call `load`."""

    def __init__(
        self,
        context: RunContext,
        waiting: Wait,
        renewal: Renewal | None = None,
    ) -> None:
        """Create a copier, whose threads start with the first load; `close` ends them.

        Args:
            context: the run.
            waiting: the wait for the server, with its limit; loads end once it is over.
            renewal: restarts the session of the slot that reads the tables' changes; None without such a slot.
        """
        self._settings = context.settings
        self._storage, self._tables = context.storage, context.tables
        self._publications = (context.identity.publication,)
        self._engine = context.engine
        self._observer = context.observer
        self._waiting = waiting
        self._renewal = renewal
        # Each thread has one session at a time: the threads bound the sessions of all loads together.
        self._pool = ThreadPoolExecutor(self._settings.load_sessions, thread_name_prefix="logicalrep-copy")
        # The last reported reason of each table that waits for another try.
        self._reported: dict[TableName, str] = {}
        self._progress: dict[TableName, LoadProgress] = {}

    def progress(self) -> dict[TableName, LoadProgress]:
        return dict(self._progress)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def load(
        self, group: Mapping[TableName, LoadRequest], is_wanted: Callable[[TableName], bool] = lambda name: True
    ) -> Iterator[CopiedTable | CopyFailed]:
        """Copy tables from one snapshot; yield each table once its rows are copied, or once its copy failed.

        The changes of the tables must be buffered since before this call. Nothing more is yielded once the wait for the
        server is over. Raises an error that concerns all tables, such as an error of the destination.

        Args:
            group: the tables, with what to load.
            is_wanted: whether a table's load is still wanted; the copy of a table that is not ends as CopyFailed.
        """
        pending_names = set(group)
        try:
            if self._renewal is not None:
                self._renewal.renew(max(request.requested_at for request in group.values()))
            with (
                hold_temporary_snapshot(self._settings.connection, self._waiting) as snapshot,
                ReusedSessions(self._settings.connection) as sessions,
            ):
                for result in self._copy_tables(snapshot, sessions, group, is_wanted):
                    pending_names.remove(result.name)
                    yield result
        except Ended:
            return
        except psycopg.Error as error:
            # Without the snapshot none of these tables can be copied.
            for name in pending_names:
                yield self._fail_for_now(name, str(error).strip(), is_own=False)
        finally:
            for name in group:
                self._progress.pop(name, None)

    def _copy_tables(
        self,
        snapshot: Snapshot,
        sessions: ReusedSessions,
        group: Mapping[TableName, LoadRequest],
        is_wanted: Callable[[TableName], bool],
    ) -> Iterator[CopiedTable | CopyFailed]:
        """Plan all tables, and copy their parts in parallel, the tables with the fewest parts first."""
        copies: list[_RunningCopy] = []
        catalog_tables = self._describe(snapshot, sessions, [request.oid for request in group.values()])
        for name, request in group.items():
            self._waiting.check()
            planned = self._plan_copy(snapshot, sessions, name, request, catalog_tables)
            if isinstance(planned, CopyFailed):
                yield planned
            elif not planned.parts:
                # A partitioned table without (new) partitions has nothing to copy.
                yield self._finish_copy(snapshot, planned)
            else:
                copies.append(planned)
        running: dict[Future[CopiedPart], _RunningCopy] = {}
        try:
            for running_copy in sorted(copies, key=lambda copy: copy.pending_parts):
                for part in running_copy.parts:
                    running[self._pool.submit(self._copy, part, running_copy.nbytes)] = running_copy
            while running:
                self._waiting.check()
                for name in {copying.name for copying in running.values() if not is_wanted(copying.name)}:
                    _cancel_parts(running, name)
                    self._progress.pop(name, None)
                    yield CopyFailed(name, "a later load was requested", may_retry=True, is_own=False)
                for future in wait(running, _CHECK_INTERVAL, FIRST_COMPLETED).done:
                    if future not in running:
                        # Another part of the table failed in this round, which cancelled this part.
                        continue
                    copying = running.pop(future)
                    error = future.exception()
                    if error is not None:
                        _cancel_parts(running, copying.name)
                        yield self._fail(copying.name, error)
                    else:
                        copied = future.result()
                        copying.files += copied.files
                        copying.deleted_keys += copied.deleted_keys
                        copying.unfit += copied.unfit
                        copying.table = copying.table.with_texts_of(copied.unfit)
                        copying.pending_parts -= 1
                        rows = sum(file.rows for file in copied.files)
                        progress = self._progress[copying.name]
                        self._progress[copying.name] = replace(progress, rows=progress.rows + rows)
                        self._observer.on_event(RowsCopied(copying.name, rows))
                        if not copying.pending_parts:
                            yield self._finish_copy(snapshot, copying)
        finally:
            for future in running:
                future.cancel()

    @contextmanager
    def _held(self, snapshot: Snapshot, sessions: ReusedSessions) -> Iterator[Connection]:
        """Yield a session in the snapshot, whose queries do not wait long for a lock."""
        with sessions.pair() as (connection, _):
            # Queries for the size of a table, or for a publication's tables, wait for a session that alters one.
            connection.execute(f"SET lock_timeout = '{self._storage.limits.lock_seconds}s'")
            hold(connection, snapshot)
            yield connection

    def _describe(
        self, snapshot: Snapshot, sessions: ReusedSessions, oids: Sequence[int]
    ) -> Mapping[int, CatalogTable] | None:
        """Return the tables of a group by their OIDs, in a few queries for all; None if a query fails: perhaps because
        of one table, whose own query fails then."""
        try:
            with self._held(snapshot, sessions) as connection:
                return query_catalog_tables(connection, oids, self._publications, self._settings.of)
        except Exception:
            return None

    def _plan_copy(
        self,
        snapshot: Snapshot,
        sessions: ReusedSessions,
        name: TableName,
        request: LoadRequest,
        catalog_tables: Mapping[int, CatalogTable] | None,
    ) -> _RunningCopy | CopyFailed:
        """Check a table in the snapshot's catalog, of which `_describe` read a part, and divide its rows into tasks."""
        settings, began = self._settings, time.monotonic()
        rate, limits = settings.load_bytes, self._storage.limits
        size = limits.range_bytes
        if rate is not None:
            size = min(size, int(rate * _RANGE_SECONDS) + 1)
        try:
            with self._held(snapshot, sessions) as connection:
                if catalog_tables is None:
                    catalog_tables = query_catalog_tables(connection, [request.oid], self._publications, settings.of)
                catalog_table = catalog_tables.get(request.oid)
                if catalog_table is None or catalog_table.table.relation.table != name:
                    return CopyFailed(
                        name, f"{name} did not exist at the snapshot, or had another name", may_retry=True
                    )
                table = with_file_partitions_of(catalog_table.table, request.last_spec)
                refuse_unloadable(replace(catalog_table, table=table), request.numbers)
                self._tables.prepare(request.folder, table)
                condition = None
                copied: Sequence[int] | None = None
                part: RequestedPart | LostPartitions | None = None
                if isinstance(request.part, WantedPart):
                    if not request.part.is_keyed_like(table):
                        return CopyFailed(name, "its key changed", may_retry=True, is_behind=True)
                    part = request.part.part
                    condition = check_condition(connection, table, self._publications, part)
                elif request.part is not None:
                    part = request.part
                    condition = check_bounds(connection, table, self._publications, part)
                    copied = sorted(part.partitions_within(table))
                # The server estimates the rows of whole tables, not of a condition.
                estimated: Sequence[int] = [] if part is not None else [table.relation.relation_id]
                if isinstance(part, RequestedPart) and part.partition is not None:
                    copied, estimated = query_tree(connection, part.partition.oid), [part.partition.oid]
                elif part is None and request.proven_spec is not None:
                    copied = estimated = query_unproven_partitions(connection, request.proven_spec, table)
                ranges = query_parts(
                    connection,
                    table.relation,
                    self._publications,
                    nulled=table.nulled,
                    size=size,
                    condition=None if condition is None else condition.rendered.as_string(connection),
                    only=copied,
                )
                (estimate,) = connection.execute(_ESTIMATE, (list(estimated),)).fetchone() or (0,)
        except Exception as error:
            return self._fail(name, error)
        self._progress[name] = LoadProgress(0, int(estimate), snapshot.taken.datetime.isoformat())
        self._observer.on_event(CopyStarted(name, int(estimate)))
        parts: list[CopyTask | KeysTask] = [
            CopyTask(
                sessions,
                snapshot,
                table,
                task_ranges,
                self._storage,
                request.folder,
                rate,
                settings.mask_key if table.hashed else None,
            )
            for task_ranges in gathered_parts(ranges, limits.task_bytes)
        ]
        if isinstance(request.part, WantedPart) and condition is not None:
            parts += [
                KeysTask(settings.connection, snapshot, table, condition, files, self._storage, request.folder, rate)
                for files in split_files(request.part, limits.keys_task_bytes)
            ]
        partial_table = None if request.proven_spec is None else catalog_table
        return _RunningCopy(
            name, table, partial_table, part, parts, sum(rows.nbytes for rows in ranges), began, len(parts)
        )

    def _copy(self, part: CopyTask | KeysTask, table_bytes: int) -> CopiedPart:
        if isinstance(part, KeysTask):
            return self._engine.run(find_deleted_keys, [part], part.stored.size)[0]
        # The size decides where the engine runs a part: a small last part runs where the table's other parts do.
        return self._engine.run(copy, [part], table_bytes)[0]

    def _finish_copy(self, snapshot: Snapshot, copy: _RunningCopy) -> CopiedTable:
        self._reported.pop(copy.name, None)
        del self._progress[copy.name]
        self._observer.on_event(
            CopyEnded(copy.name, sum(file.rows for file in copy.files), time.monotonic() - copy.began)
        )
        load = secrets.token_hex(8)
        copied = CopiedTable(
            copy.name, copy.table, snapshot.lsn, copy.files, load, snapshot.taken, copy.catalog_table, copy.unfit
        )
        return replace(copied, part=copy.part, deleted_keys=copy.deleted_keys).described(copy.table)

    def _fail(self, name: TableName, error: BaseException) -> CopyFailed:
        """Return the failure of a table after an error of it alone; raise an error that concerns all tables."""
        self._progress.pop(name, None)
        if isinstance(error, SnapshotError):
            # A server that stops ends its snapshots: the next try has a new snapshot.
            return self._fail_for_now(name, str(error).strip(), is_own=error.code != "SNAPSHOT_GONE")
        if isinstance(error, psycopg.Error):
            is_temporary = isinstance(error, LOCKED) or not is_table_error(error)
            if is_temporary or is_retriable(error):
                return self._fail_for_now(name, str(error).strip(), is_own=not is_temporary)
        if isinstance(error, StorageError):
            return self._fail_for_now(name, str(error).strip(), is_own=False)
        if not is_table_error(error):
            raise error
        log_unexpected(name, error)
        return CopyFailed(name, reason_of(error), may_retry=False)

    def _fail_for_now(self, name: TableName, reason: str, *, is_own: bool) -> CopyFailed:
        """Return a failure after which another try may succeed; report its reason once."""
        if self._reported.get(name) != reason:
            self._reported[name] = reason
            self._observer.on_event(WaitReported(f"the load of {name} restarts: {reason}"))
        return CopyFailed(name, reason, may_retry=True, is_own=is_own)


def _cancel_parts(running: dict[Future[CopiedPart], _RunningCopy], name: TableName) -> None:
    for future in [future for future, running_copy in running.items() if running_copy.name == name]:
        future.cancel()
        del running[future]


# The estimated rows of tables and their partitions: the rows per page at the last ANALYZE, times the current pages.
# Before the first ANALYZE, a page counts as full of rows whose columns have the planner's default widths; 0 for tables
# of up to 10 MB, whose last pages may be nearly empty.
_ESTIMATE = """
WITH RECURSIVE files AS (
    SELECT oid, relkind, reltuples, relpages FROM pg_class WHERE oid = ANY(%s)
    UNION ALL
    SELECT class.oid, class.relkind, class.reltuples, class.relpages
    FROM files JOIN pg_inherits ON files.relkind = 'p' AND inhparent = files.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT coalesce(sum(pages * CASE
    WHEN relpages > 0 AND reltuples >= 0 THEN reltuples / relpages
    WHEN pages * page > 1e7 THEN page / width
    ELSE 0
END), 0)
FROM files
CROSS JOIN LATERAL (
    SELECT pg_relation_size(files.oid) / current_setting('block_size')::int AS pages,
        current_setting('block_size')::float AS page
) AS size
CROSS JOIN LATERAL (
    SELECT 28 + coalesce(sum(CASE WHEN attlen > 0 THEN attlen ELSE 32 END), 0) AS width
    FROM pg_attribute WHERE attrelid = files.oid AND attnum > 0 AND NOT attisdropped
) AS row
WHERE relkind <> 'p'
"""
