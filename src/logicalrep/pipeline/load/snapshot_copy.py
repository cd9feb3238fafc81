"""Copies tables under one snapshot; its slot's position separates earlier from later changes. Locks last only while a
range is read, so a table that is truncated, rewritten or altered meanwhile is reloaded."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

import psycopg

from logicalrep.observe.events import CopyEnded, CopyStarted, RowsCopied, WaitReported
from logicalrep.observe.figures import LoadProgress
from logicalrep.pipeline.catalog.changing_texts import refuse_names
from logicalrep.pipeline.catalog.definitions import CatalogTable, query_catalog_tables
from logicalrep.pipeline.catalog.partitions import query_unproven_partitions
from logicalrep.pipeline.load.copying import (
    CopiedPart,
    CopyTask,
    are_loops_compiled,
    copy,
)
from logicalrep.pipeline.load.deleted_keys import KeysTask, WantedPart, check_condition, find_deleted_keys, split_files
from logicalrep.pipeline.load.renewal import Renewal
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.fitting import refuse_unfit, with_file_partitions_of
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.storage.data_files import DataFile, with_columns
from logicalrep.pipeline.storage.storage import StorageError
from logicalrep.pipeline.table_errors import is_retriable, is_table_error, log_unexpected, reason_of
from logicalrep.postgres.retries import LOCKED, Ended, Wait
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, hold, hold_temporary_snapshot
from logicalrep.postgres.table_rows.keys import query_tree
from logicalrep.postgres.table_rows.parts import query_parts
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.columnar.compiling import announce_compilation
from logicalrep_runtime.scalars import Lsn, TimestampTz

_RANGE_SECONDS = 0.25
"""The most seconds that a range may take at the limited rate."""
_CHECK_AGAIN = 0.5
"""The most seconds until a load notices that it must end."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    folder: str
    oid: int
    """The table's OID: another table may have its name at the snapshot."""
    requested_at: float = field(default_factory=time.monotonic)
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The required numbers of masked and omitted columns: another column may have the name."""
    last_spec: TableSpec | None = None
    """The table's last description; None for a new table."""
    proven_spec: TableSpec | None = None
    part: WantedPart | None = None
    """The only part to load; None for all rows, or for added partitions."""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table whose rows are copied into files; no version of the table has these files yet."""

    name: TableName
    table: TableSpec
    position: Lsn
    """The snapshot's position: changes committed at or after it are not in these rows."""
    files: list[DataFile]
    load: str
    taken: TimestampTz
    """About the server's time before which all of the rows had committed."""
    catalog_table: CatalogTable | None = None
    """The table in the snapshot's catalog, if only some rows are loaded; None for all rows."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    part: RequestedPart | None = None
    """The loaded part; None for all rows, or for added partitions."""
    deleted_keys: Sequence[DataFile] = ()

    def described(self, table: TableSpec) -> CopiedTable:
        files = self.files
        if not table.settings.abilities.has_field_ids:
            texts = {column.name for column in table.written if column.has_texts}
            files = [with_columns(file, table.stored, texts) for file in files]
        return replace(self, table=table, files=files)


@dataclass(frozen=True, slots=True)
class CopyFailed:
    name: TableName
    reason: str
    may_retry: bool
    is_own: bool = True
    """Whether the table itself failed, so that tries are counted; waits for a server have no limit."""
    is_behind: bool = False
    """Whether the table must apply its buffered changes first."""


@dataclass(slots=True)
class _RunningCopy:
    name: TableName
    table: TableSpec
    catalog_table: CatalogTable | None
    part: RequestedPart | None
    parts: list[CopyTask | KeysTask]
    nbytes: int
    """About the bytes of its rows on the server's disk."""
    began: float
    pending_parts: int
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
        """A load ends once the wait is over; `renewal` is None if no slot reads the tables' changes meanwhile."""
        self._settings = context.settings
        self._storage = context.storage
        self._publications = (context.identity.publication,)
        self._engine = context.engine
        self._observer = context.observer
        self._waiting = waiting
        self._renewal = renewal
        # Each thread has one session, which bounds the sessions of all loads together.
        self._pool = ThreadPoolExecutor(self._settings.load_sessions, thread_name_prefix="logicalrep-copy")
        self._reported: dict[TableName, str] = {}
        self._progress: dict[TableName, LoadProgress] = {}

    def progress(self) -> dict[TableName, LoadProgress]:
        return dict(self._progress)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def load(
        self, group: Mapping[TableName, LoadRequest], is_wanted: Callable[[TableName], bool] = lambda name: True
    ) -> Iterator[CopiedTable | CopyFailed]:
        """Copy tables from one snapshot; yield each once its rows are copied. Their changes must be buffered before
        this call; a table is abandoned once `is_wanted` returns False."""
        pending_names = set(group)
        try:
            if self._renewal is not None:
                self._renewal.renew(max(request.requested_at for request in group.values()))
            with hold_temporary_snapshot(self._settings.connection, self._waiting) as snapshot:
                for result in self._copy_tables(snapshot, group, is_wanted):
                    pending_names.remove(result.name)
                    yield result
        except Ended:
            return
        except psycopg.Error as error:
            # Without the snapshot none of these tables can be copied.
            for name in pending_names:
                yield self._begin_again(name, str(error).strip(), is_own=False)
        finally:
            for name in group:
                self._progress.pop(name, None)

    def _copy_tables(
        self, snapshot: Snapshot, group: Mapping[TableName, LoadRequest], is_wanted: Callable[[TableName], bool]
    ) -> Iterator[CopiedTable | CopyFailed]:
        """Copy tables; the parts of all tables run in parallel, small tables first."""
        copies: list[_RunningCopy] = []
        for name, request in group.items():
            self._waiting.check()
            planned = self._plan_copy(snapshot, name, request)
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
                for name in {table.name for table in running.values() if not is_wanted(table.name)}:
                    _give_up(running, name)
                    self._progress.pop(name, None)
                    yield CopyFailed(name, "a later load was requested", may_retry=True, is_own=False)
                for future in wait(running, _CHECK_AGAIN, FIRST_COMPLETED).done:
                    if future not in running:
                        # Another part of this table has failed, which cancelled this one.
                        continue
                    table = running.pop(future)
                    error = future.exception()
                    if error is not None:
                        _give_up(running, table.name)
                        yield self._give_up_table(table.name, error)
                    else:
                        copied = future.result()
                        table.files += copied.files
                        table.deleted_keys += copied.deleted_keys
                        table.unfit += copied.unfit
                        table.table = table.table.with_texts_of(copied.unfit)
                        table.pending_parts -= 1
                        rows = sum(file.rows for file in copied.files)
                        progress = self._progress[table.name]
                        self._progress[table.name] = replace(progress, rows=progress.rows + rows)
                        self._observer.on_event(RowsCopied(table.name, rows))
                        if not table.pending_parts:
                            yield self._finish_copy(snapshot, table)
        finally:
            for future in running:
                future.cancel()

    def _plan_copy(self, snapshot: Snapshot, name: TableName, request: LoadRequest) -> _RunningCopy | CopyFailed:
        settings, began = self._settings, time.monotonic()
        rate, limits = settings.load_bytes, self._storage.limits
        size = limits.range_bytes
        if rate is not None:
            size = min(size, int(rate * _RANGE_SECONDS) + 1)
        try:
            with settings.connection.connect() as connection:
                # A query for a table's size, or a publication's tables, waits for sessions that alter one.
                connection.execute(f"SET lock_timeout = '{limits.lock_seconds}s'")
                hold(connection, snapshot)
                catalog_table = query_catalog_tables(connection, [request.oid], self._publications, settings.of).get(
                    request.oid
                )
                if catalog_table is None or catalog_table.table.relation.table != name:
                    return CopyFailed(
                        name, f"{name} did not exist at the snapshot, or had another name", may_retry=True
                    )
                catalog_table.refuse_incomplete_old_rows()
                table = with_file_partitions_of(catalog_table.table, request.last_spec)
                refuse_unfit(table, request.numbers)
                refuse_names(name, catalog_table.changing_texts)
                condition = part = None
                if request.part is not None:
                    if not request.part.is_keyed_like(table):
                        return CopyFailed(name, "its key changed", may_retry=True, is_behind=True)
                    part = request.part.part
                    condition = check_condition(connection, table, self._publications, part)
                ranges = query_parts(
                    connection,
                    table.relation,
                    self._publications,
                    nulled=table.nulled,
                    size=size,
                    condition=None if condition is None else condition.rendered.as_string(connection),
                )
                # The server's estimates cover tables, and no conditions.
                copied: Sequence[int] | None = None
                estimated: Sequence[int] = [] if part is not None else [table.relation.relation_id]
                if part is not None and part.partition is not None:
                    copied, estimated = query_tree(connection, part.partition.oid), [part.partition.oid]
                elif part is None and request.proven_spec is not None:
                    copied = estimated = query_unproven_partitions(connection, request.proven_spec, table)
                if copied is not None:
                    ranges = [rows for rows in ranges if rows.oid in copied]
                (estimate,) = connection.execute(_ESTIMATE, (list(estimated),)).fetchone() or (0,)
        except Exception as error:
            return self._give_up_table(name, error)
        self._progress[name] = LoadProgress(0, int(estimate), snapshot.taken.datetime.isoformat())
        self._observer.on_event(CopyStarted(name, int(estimate)))
        step = limits.task_ranges
        parts: list[CopyTask | KeysTask] = [
            CopyTask(
                settings.connection,
                snapshot,
                table,
                tuple(few),
                self._storage,
                request.folder,
                rate,
                settings.mask_key if table.hashed else None,
            )
            for few in (ranges[start : start + step] for start in range(0, len(ranges), step))
        ]
        if request.part is not None and condition is not None:
            parts += [
                KeysTask(settings.connection, snapshot, table, condition, few, self._storage, request.folder, rate)
                for few in split_files(request.part, limits.keys_task_bytes)
            ]
        partial_table = None if request.proven_spec is None else catalog_table
        return _RunningCopy(
            name, table, partial_table, part, parts, sum(rows.nbytes for rows in ranges), began, len(parts)
        )

    def _copy(self, part: CopyTask | KeysTask, of_table: int) -> CopiedPart:
        if isinstance(part, KeysTask):
            return self._engine.run(find_deleted_keys, [part], part.stored.size)[0]
        if of_table > self._storage.limits.uncompiled_bytes and not are_loops_compiled():
            # The process that compiles cannot announce it.
            announce_compilation()
        # Each part counts with the whole table's size: the last part may be small.
        return self._engine.run(copy, [part], of_table)[0]

    def _finish_copy(self, snapshot: Snapshot, copy: _RunningCopy) -> CopiedTable:
        self._reported.pop(copy.name, None)
        del self._progress[copy.name]
        self._observer.on_event(
            CopyEnded(copy.name, sum(file.rows for file in copy.files), time.monotonic() - copy.began)
        )
        load = secrets.token_hex(8)
        taken = CopiedTable(
            copy.name, copy.table, snapshot.lsn, copy.files, load, snapshot.taken, copy.catalog_table, copy.unfit
        )
        return replace(taken, part=copy.part, deleted_keys=copy.deleted_keys).described(copy.table)

    def _give_up_table(self, name: TableName, error: BaseException) -> CopyFailed:
        """Return the failure of one table; raise an error that concerns all tables."""
        self._progress.pop(name, None)
        if isinstance(error, SnapshotError):
            # A server that stops ends its snapshots; the table is copied under a new one.
            return self._begin_again(name, str(error).strip(), is_own=error.code != "SNAPSHOT_GONE")
        if isinstance(error, psycopg.Error):
            passes = isinstance(error, LOCKED) or not is_table_error(error)
            if passes or is_retriable(error):
                return self._begin_again(name, str(error).strip(), is_own=not passes)
        if isinstance(error, StorageError):
            return self._begin_again(name, str(error).strip(), is_own=False)
        if not is_table_error(error):
            raise error
        log_unexpected(name, error)
        return CopyFailed(name, reason_of(error), may_retry=False)

    def _begin_again(self, name: TableName, reason: str, *, is_own: bool) -> CopyFailed:
        if self._reported.get(name) != reason:
            self._reported[name] = reason
            self._observer.on_event(WaitReported(f"the load of {name} restarts: {reason}"))
        return CopyFailed(name, reason, may_retry=True, is_own=is_own)


def _give_up(running: dict[Future[CopiedPart], _RunningCopy], name: TableName) -> None:
    for future in [future for future, running_copy in running.items() if running_copy.name == name]:
        future.cancel()
        del running[future]


# The estimated rows of tables and their partitions: rows a page at the last ANALYZE, times the current pages. Before
# the first ANALYZE, full pages of rows of the planner's widths.
_ESTIMATE = """
WITH RECURSIVE files AS (
    SELECT oid, relkind, reltuples, relpages FROM pg_class WHERE oid = ANY(%s)
    UNION ALL
    SELECT class.oid, class.relkind, class.reltuples, class.relpages
    FROM files JOIN pg_inherits ON files.relkind = 'p' AND inhparent = files.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT coalesce(sum(pages * CASE WHEN relpages > 0 AND reltuples >= 0 THEN reltuples / relpages ELSE page / width END),
    0)
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
