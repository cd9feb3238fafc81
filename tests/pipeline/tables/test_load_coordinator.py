"""A table's phases while it loads, without a server: what is queued, copied, tried again, stopped, and follows.

All parts are the real parts of a run, over a folder of this machine. `Server` alone is a double: it stands for the two parts
that ask PostgreSQL, `SnapshotCopy` and `Catalog`. With a server, no test could choose the moment and the result of a
copy, or keep a committed transaction out of the catalog; `test_unproven_changes` and `tests/pipeline/load` have one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.observe.events import LoadsNeeded, RunEvent, TableStopped, WarningIssued
from logicalrep.observe.figures import LoadProgress, Phase
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import ASKED_FOR, PartitionsLoad
from logicalrep.pipeline.catalog.catalog import Catalog, CatalogRefresh
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.errors import NeedsResync, RefusedCommit
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.index.key_indexes import KeyIndexes
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.load_queue import LoadQueue
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest, SnapshotCopy
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.pipeline.tables.lifecycle import LifecycleError
from logicalrep.pipeline.tables.load_coordinator import LoadCoordinator
from logicalrep.pipeline.tables.phases import CatchingUp, Queued
from logicalrep.pipeline.tables.reload_limiter import ReloadLimiter
from logicalrep.pipeline.tables.stops import TableStops
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.postgres.visibility import Visibility
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz
from tests.pipeline.histories import OID, table
from tests.pipeline.stored import rows_at
from tests.waiting import eventually

T, FOLDER, PARTITION = TableName("public", "t"), "public/t", 7
SPEC = table(("id",))
WITH_PARTITION = replace(SPEC, files=(*SPEC.files, (PARTITION, PARTITION)))
XID = 5


@dataclass
class Server:
    """The copies of the server's tables, and its catalog, as a test wants them."""

    stop: threading.Event
    requests: list[LoadRequest] = field(default_factory=list)
    copying: set[TableName] = field(default_factory=set)
    """The tables whose rows are being copied."""
    unseen: frozenset[int] = frozenset()
    """The ids of committed transactions that the catalog's snapshot does not see."""
    _results: queue.SimpleQueue[CopiedTable | CopyFailed] = field(default_factory=queue.SimpleQueue)
    _delivered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    # SnapshotCopy

    def load(
        self, group: Mapping[TableName, LoadRequest], is_last: Callable[[TableName], bool]
    ) -> Iterator[CopiedTable | CopyFailed]:
        self.requests += group.values()
        while not self.stop.is_set():
            try:
                result = self._results.get(timeout=0.05)
            except queue.Empty:
                continue
            yield result
            return self._delivered.release()

    def progress(self) -> dict[TableName, LoadProgress]:
        return {name: LoadProgress(0, 0, "") for name in self.copying}

    def close(self) -> None: ...

    def deliver(self, result: CopiedTable | CopyFailed) -> None:
        """Let the load of the next or the current request end with a result."""
        self._results.put(result)
        assert self._delivered.acquire(timeout=300)

    # Catalog

    def refresh(self, oids: Collection[int]) -> CatalogRefresh:
        return CatalogRefresh({OID: CatalogTable(SPEC, frozenset(), {})}, Visibility(1000, self.unseen))


class TableRun:
    """The parts of replicate that move a table."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor, clock: list[float]) -> None:
        self.warnings: list[str] = []
        self.needed: list[str] = []
        """The reported reasons of loads."""
        self.clock, self.stop, self.table = clock, threading.Event(), Table(T, FOLDER, OID)
        self.storage = Storage(str(folder), limits=Limits(load_pause_seconds=1000.0))
        self.settings = ReplicateSettings("", str(folder), keep=1.0)
        self.server = Server(self.stop)
        context = RunContext(
            settings=self.settings,
            storage=self.storage,
            tables=table_format(self.storage),
            identity=Identity("s", "p", 1, "d"),
            observer=self,
            engine=SequentialEngine(),
            indexes=KeyIndexes("", 0, pytest.fail),
            patience=Patience(self, self.stop, str, 30.0),
            stop=self.stop,
        )
        catalog = cast(Catalog, self.server)
        writer = TableWriter(context, catalog)
        self.buffers = TableBuffers(context, catalog, writer, lambda: None)
        self.stops = TableStops(context, writer, self.buffers)
        self.queue = LoadQueue(cast(SnapshotCopy, self.server), self.stop, self.storage.limits)
        guard, limiter = Guard(self.storage, self.settings), ReloadLimiter(self.storage)
        self.loads = LoadCoordinator(context, self.queue, self.buffers, guard, self.stops, limiter, pool)
        self.failures = TableFailures(context, self.loads, self.stops, catalog)

    def on_event(self, event: RunEvent) -> None:
        match event:
            case TableStopped(_, text) | WarningIssued(text):
                self.warnings.append(text)
            case LoadsNeeded(_, text):
                self.needed.append(text)

    @property
    def requests(self) -> int:
        """The number of loads that have begun."""
        return len(self.server.requests)

    def step(self) -> None:
        self.loads.step({T: self.table}, Lsn(1000))

    def end_load(self, result: CopiedTable | CopyFailed) -> None:
        """End the table's load with a result, once its next try is due."""
        self.clock[0] += 60
        self.step()
        self.server.deliver(result)
        self.step()

    def end_job(self) -> None:
        phase = self.table.phase
        assert isinstance(phase, CatchingUp)
        eventually(lambda: phase.work.is_done)
        self.failures.run(self.table, lambda: self.loads.finish(self.table, phase.work))

    def buffer_a_message(self, lsn: int) -> None:
        """Buffer a transaction at an LSN with a Relation message, which only the catalog can prove."""
        sent = SentRelation.of(SPEC.relation, commit_lsn=lsn, ordinal=0, xid=XID)
        self.buffers.append(self.table, TableChanges(relations=[replace(sent, key=("id",))]), Lsn(lsn + 1))

    def copied(self, *ids: int, position: int = 100, **facts: Any) -> CopiedTable:
        """Return a copy with rows of some ids."""
        columns = [pa.array(ids), *[pa.nulls(len(ids))] * 3]
        arrays = [column.cast(field.type) for column, field in zip(columns, SPEC.stored, strict=True)]
        files = write_rows(self.storage, FOLDER, SPEC.stored, pa.table(arrays, schema=SPEC.stored))
        return replace(CopiedTable(T, SPEC, Lsn(position), files, f"load {self.requests}", TimestampTz(0)), **facts)

    def copied_partition(self, *ids: int) -> CopiedTable:
        described = CatalogTable(WITH_PARTITION, frozenset(), {})
        return self.copied(*ids, position=200, table=WITH_PARTITION, catalog_table=described)

    def ids(self) -> set[str | None]:
        """Return the ids of the rows that readers of the table see."""
        return {id for id, *_ in rows_at(self.storage)}


@pytest.fixture
def run(tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[TableRun]:
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + clock[0])
    with ThreadPoolExecutor(1) as pool:
        table_run = TableRun(tmp_path, pool, clock)
        with table_run.queue:
            yield table_run


def test_a_load_begins_after_the_report_of_its_reason(run: TableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def add(requests: Mapping[TableName, LoadRequest]) -> None:
        begun.append(list(run.needed))

    monkeypatch.setattr(run.queue, "add", add)
    run.loads.load(run.table, "new table")
    run.step()
    assert begun == [["new table"]]


def test_a_table_is_queued_copied_catches_up_and_follows(run: TableRun) -> None:
    run.loads.load(run.table, "new table")
    assert run.table.phase.name is Phase.QUEUED
    run.step()
    eventually(lambda: run.requests == 1)
    run.step()
    assert run.table.phase.name is Phase.QUEUED
    run.server.copying.add(T)
    run.step()
    assert run.table.phase.name is Phase.COPYING
    run.end_load(run.copied(1))
    phase = run.table.phase
    assert isinstance(phase, CatchingUp)
    eventually(lambda: phase.work.is_done)
    assert run.ids() == {"1"}
    # A transaction arrives after the pass over the buffer, and the catalog does not see it yet.
    run.server.unseen = frozenset({XID})
    run.buffer_a_message(150)
    run.end_job()
    assert run.table.phase.name is Phase.CATCHING_UP
    run.server.unseen = frozenset()
    run.end_job()
    assert run.table.phase.name is Phase.FOLLOWING
    assert run.table.copy is not None
    assert run.table.copy.applied == Lsn(150)


FAILED = CopyFailed(T, "no", may_retry=False)
RETRIED = CopyFailed(T, "no", may_retry=True)
ANOTHER_TABLE = replace(SPEC, relation=replace(SPEC.relation, relation_id=Oid(OID + 1)))


@pytest.mark.parametrize(
    ("results", "phase"),
    [
        ([{}], Phase.CATCHING_UP),
        # Another table has the name.
        ([{"table": ANOTHER_TABLE}], Phase.QUEUED),
        ([{"position": 9}], Phase.QUEUED),
        ([RETRIED], Phase.QUEUED),
        ([FAILED], Phase.STOPPED),
        ([replace(RETRIED, reason=f"no {number}") for number in range(Limits().load_tries)], Phase.STOPPED),
        ([replace(RETRIED, is_own=False)] * 10, Phase.QUEUED),
    ],
)
def test_the_end_of_a_copy_moves_its_table(
    run: TableRun, results: list[dict[str, Any] | CopyFailed], phase: Phase
) -> None:
    run.table.least_position = Lsn(10)
    run.loads.load(run.table, "new table")
    for result in results:
        run.end_load(run.copied(1, **result) if isinstance(result, dict) else result)
    assert run.table.phase.name is phase
    assert len(run.warnings) == (phase is Phase.STOPPED)


def test_a_copy_of_a_table_that_stopped_meanwhile_is_ignored(run: TableRun) -> None:
    run.loads.load(run.table, "new table")
    run.stops.stop(run.table, "an error")
    run.end_load(run.copied(1))
    assert run.table.phase.name is Phase.STOPPED


def follow(run: TableRun) -> None:
    run.loads.load(run.table, "new table")
    follow_copied(run)


def follow_copied(run: TableRun) -> None:
    run.end_load(run.copied(1))
    run.end_job()
    assert run.table.phase.name is Phase.FOLLOWING


def test_attached_partitions_are_loaded_beside_the_other_rows(run: TableRun) -> None:
    follow(run)
    run.buffer_a_message(150)
    run.loads.load(run.table, "a partition with rows was attached", [PARTITION])
    pending = PartitionsLoad(FOLDER, "a partition with rows was attached", (PARTITION,))
    assert ChangeBuffer(run.storage).pending_loads() == {FOLDER: pending}
    assert run.table.pending == pending
    assert run.table.is_whole
    assert run.table.copy is not None
    run.end_load(RETRIED)
    assert run.table.phase.name is Phase.QUEUED
    assert run.server.requests[-1].proven_spec is run.table.copy.stored.table
    run.end_load(run.copied_partition(2))
    run.end_job()
    assert (run.table.phase.name, run.ids()) == (Phase.FOLLOWING, {"1", "2"})
    assert run.table.copy.applied == Lsn(199)


def test_a_process_that_ends_leaves_partitions_to_the_next_process(run: TableRun) -> None:
    follow(run)
    run.server.unseen = frozenset({XID})
    run.buffer_a_message(150)
    run.loads.load(run.table, "a partition with rows was attached", [PARTITION])
    run.end_load(run.copied_partition(2))
    # The buffered changes from before the copy wait for the catalog.
    run.stop.set()
    run.end_job()
    assert (run.table.phase.name, run.ids()) == (Phase.CATCHING_UP, {"1"})
    assert isinstance(ChangeBuffer(run.storage).pending_loads()[FOLDER], PartitionsLoad)


def fail(error: Exception) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "phase", "refused"),
    [
        (NeedsResync("its columns changed"), Phase.QUEUED, None),
        (ZeroDivisionError(), Phase.STOPPED, None),
        (LifecycleError("a mistake"), Phase.STOPPED, None),
        (RefusedCommit(Lsn(9), ValueError("infinity")), Phase.HELD, "0/9"),
    ],
    ids=repr,
)
def test_an_error_of_a_table_loads_or_stops_it(
    run: TableRun, error: Exception, phase: Phase, refused: str | None
) -> None:
    follow(run)
    assert run.failures.run(run.table, fail(error)) is None
    assert run.table.phase.name is phase
    assert run.table.state(Lsn(9), 1, None).refused == refused
    assert (run.table.stopped is None) == (phase is Phase.QUEUED)


def test_an_error_of_all_tables_is_raised_and_moves_none(run: TableRun) -> None:
    follow(run)
    with pytest.raises(StorageError):
        run.failures.run(run.table, fail(StorageError("it is away")))
    assert run.table.phase.name is Phase.FOLLOWING


def test_a_held_table_is_stopped_by_time_or_another_error_and_loads_when_asked_for(run: TableRun) -> None:
    follow(run)

    def expire() -> None:
        run.stops.expire([run.table])
        assert run.table.phase.name is Phase.HELD
        run.clock[0] += run.settings.keep * 3600 + 1
        run.stops.expire([run.table])

    stops: list[Callable[[], object]] = [expire, lambda: run.failures.run(run.table, fail(ZeroDivisionError()))]
    for stop in stops:
        run.failures.run(run.table, fail(RefusedCommit(Lsn(9), ValueError("infinity"))))
        assert run.table.phase.name is Phase.HELD
        stop()
        assert run.table.phase.name is Phase.STOPPED
        assert not run.table.is_refused
        run.loads.load(run.table, ASKED_FOR)
        follow_copied(run)


def test_a_frequent_reload_waits_until_it_is_due_or_requested(run: TableRun) -> None:
    for _ in range(run.storage.limits.loads_at_once):
        run.loads.load(run.table, "its columns changed")
        follow_copied(run)
    requests = run.requests
    begin = time.time() + run.storage.limits.load_pause_seconds
    for reason in ("its columns changed", "another reason", "another reason"):
        # The limiter counts a waiting load once.
        run.loads.load(run.table, reason)
        run.step()
        assert (run.table.phase.name, run.table.load_begin) == (Phase.QUEUED, begin)
        assert f"({reason}): to spare the server, the next load begins at 20" in str(run.table.postponed)
        assert run.warnings[-1] == f"public.t: {run.table.postponed}"
        assert run.table.state(Lsn(1), 1, None).error == run.table.postponed
    assert sum("next load begins" in warning for warning in run.warnings) == 2
    # An opened table is queued like this after a restart.
    assert isinstance(run.table.phase, Queued)
    run.loads.queue(run.table, run.table.phase)
    assert run.table.load_begin == begin
    run.loads.load(run.table, ASKED_FOR)
    assert run.table.postponed is None
    follow_copied(run)
    assert run.requests == requests + 1
    for _ in range(run.storage.limits.loads_at_once):
        run.loads.load(run.table, "its columns changed")
        follow_copied(run)
    run.loads.load(run.table, "its columns changed")
    run.clock[0] += run.storage.limits.load_pause_seconds - 1
    run.step()
    assert run.table.postponed is not None
    run.clock[0] += 1
    follow_copied(run)
    assert (run.requests, run.table.postponed) == (requests + 4, None)


def test_a_table_that_must_not_be_loaded_stops(run: TableRun) -> None:
    StoredSettings(protected={OID: T}).write(run.storage)
    run.loads.guard = Guard(run.storage, run.settings)
    run.loads.load(run.table, "new table")
    assert run.table.phase.name is Phase.STOPPED
    assert "it had columns that are masked or left out" in run.warnings[-1]
