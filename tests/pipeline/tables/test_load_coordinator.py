"""A table's phases while it loads, without a server: what is queued, copied, tried again, stopped, and follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logicalrep.observe.events import LoadsNeeded, RunEvent, TableStopped, WarningIssued
from logicalrep.observe.figures import Phase
from logicalrep.pipeline.buffer.pending_loads import (
    ASKED_FOR,
    BufferedChanges,
    HeldCommit,
    PartitionsLoad,
    PendingLoad,
)
from logicalrep.pipeline.errors import NeedsResync, RefusedCommit
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.pipeline.tables.lifecycle import LifecycleError
from logicalrep.pipeline.tables.load_coordinator import LoadCoordinator
from logicalrep.pipeline.tables.phases import CatchingUp, CatchUp, Copy, Queued
from logicalrep.pipeline.tables.stops import TableStops
from logicalrep.pipeline.tables.table import Table
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz
from tests.pipeline.histories import OID, table
from tests.pipeline.stored import APP, new_log
from tests.waiting import eventually

T, FOLDER = TableName("public", "t"), "public/t"


@dataclass
class ReloadLimiter:
    loads_left: int = 2
    pause: float = 1000.0

    def add(self, folder: str, reason: str, partitions: Sequence[int]) -> float | None:
        self.loads_left -= 1
        return time.time() + self.pause if self.loads_left < 0 else None

    def clear(self, folder: str) -> None:
        self.loads_left = 2


@dataclass
class Writer:
    """A destination that records its calls; `behind` is how often the catalog lacks transactions."""

    storage: Storage
    behind: int = 0
    is_ending: bool = False
    did: list[str] = field(default_factory=list)
    saved: list[PendingLoad] = field(default_factory=list)

    def save_pending_load(self, pending: PendingLoad) -> None:
        self.saved.append(pending)

    def hold(self, table: Table, lsn: Lsn) -> HeldCommit:
        return HeldCommit(table.folder, str(lsn), 0.0)

    def release_hold(self, table: Table) -> BufferedChanges:
        return BufferedChanges(table.folder, "")

    def clear(self, table: Table) -> None:
        self.did.append("clear")

    def write_stopped(self, table: Table) -> None:
        self.did.append("stopped")

    def take_table(self, table: Table, loaded: CopiedTable, work: CatchUp) -> Copy:
        self.did.append("replace")
        work.copy = Copy(new_log(self.storage, ("id",), FOLDER), APP)
        return work.copy

    def take_partitions(
        self, table: Table, copy: Copy, current: object, loaded: CopiedTable, work: CatchUp
    ) -> Copy | None:
        self.did.append("put in")
        return None if self.is_ending else copy

    def apply(self, table: Table, copy: Copy, work: CatchUp) -> Copy:
        self.did.append("apply")
        return copy

    def apply_rest(self, table: Table, copy: Copy) -> bool:
        self.behind -= 1
        return self.behind < 0


@dataclass
class LoadQueue:
    wanted: list[Mapping[TableName, LoadRequest]] = field(default_factory=list)
    copying: dict[TableName, object] = field(default_factory=dict)
    ended: list[CopiedTable | CopyFailed] = field(default_factory=list)

    def add(self, loads: Mapping[TableName, LoadRequest]) -> None:
        self.wanted.append(loads)

    def progress(self) -> dict[TableName, object]:
        return self.copying

    def results(self, taken: Lsn) -> list[CopiedTable | CopyFailed]:
        ended, self.ended = self.ended, []
        return ended


class TableRun:
    """The parts of replicate that move a table, over a writer and a queue of loads that a test drives."""

    def __init__(self, pool: ThreadPoolExecutor, storage: Storage) -> None:
        self.warnings: list[str] = []
        self.refusal: str | None = None
        settings = SimpleNamespace(keep=1.0)
        context = cast(Any, SimpleNamespace(observer=self, limits=Limits(), settings=settings, patience=self))
        self.writer, self.loader, self.table = Writer(storage), LoadQueue(), Table(T, FOLDER, OID)
        guard = SimpleNamespace(reason=lambda oid, name: self.refusal, numbers=lambda oid: {})
        self.limiter = ReloadLimiter()
        self.stops = TableStops(context, cast(Any, self.writer), cast(Any, self.writer))
        self.loads = LoadCoordinator(
            context,
            cast(Any, self.loader),
            cast(Any, self.writer),
            cast(Any, guard),
            self.stops,
            cast(Any, self.limiter),
            pool,
        )
        self.failures = TableFailures(context, self.loads, self.stops, cast(Any, None))

    def run(self, action: Callable[[], Any]) -> Any:
        return action()

    def on_event(self, event: RunEvent) -> None:
        match event:
            case TableStopped(_, text) | LoadsNeeded(_, text) | WarningIssued(text):
                self.warnings.append(text)

    def step(self, *results: CopiedTable | CopyFailed) -> None:
        self.loader.ended += results
        self.loads.step({T: self.table}, Lsn(100))

    def end_job(self) -> None:
        phase = self.table.phase
        assert isinstance(phase, CatchingUp)
        eventually(lambda: phase.work.is_done)
        self.failures.run(self.table, lambda: self.loads.finish(self.table, phase.work))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[TableRun]:
    with ThreadPoolExecutor(1) as pool:
        yield TableRun(pool, Storage(str(tmp_path)))


SPEC = table(("id",))


def copied(position: int = 100, oid: int = OID) -> CopiedTable:
    spec = replace(SPEC, relation=replace(SPEC.relation, relation_id=Oid(oid)))
    return CopiedTable(T, spec, Lsn(position), [], "load 1", TimestampTz(0))


def test_a_table_is_queued_copied_catches_up_and_follows(run: TableRun) -> None:
    run.writer.behind = 1
    run.loads.load(run.table, "new table")
    assert (run.table.phase.name, run.writer.did, len(run.loader.wanted)) == (Phase.QUEUED, ["clear"], 1)
    run.step()
    assert run.table.phase.name is Phase.QUEUED
    run.loader.copying[T] = object()
    run.step()
    assert run.table.phase.name is Phase.COPYING
    run.step(copied())
    assert run.table.phase.name is Phase.CATCHING_UP
    run.end_job()
    # The catalog does not have all transactions of the buffered changes.
    assert run.table.phase.name is Phase.CATCHING_UP
    run.end_job()
    assert run.table.phase.name is Phase.FOLLOWING
    assert run.writer.did == ["clear", "replace", "apply"]


@pytest.mark.parametrize(
    ("results", "phase"),
    [
        ([copied()], Phase.CATCHING_UP),
        # Another table has the name by now.
        ([copied(oid=OID + 1)], Phase.QUEUED),
        ([copied(position=9)], Phase.QUEUED),
        ([CopyFailed(T, "no", may_retry=True)], Phase.QUEUED),
        ([CopyFailed(T, "no", may_retry=False)], Phase.STOPPED),
        ([CopyFailed(T, f"no {number}", may_retry=True) for number in range(Limits().load_tries)], Phase.STOPPED),
        ([CopyFailed(T, "away", may_retry=True, is_own=False)] * 20, Phase.QUEUED),
        # The copy of a load that was given up is ignored.
        ([CopyFailed(T, "no", may_retry=False), copied()], Phase.STOPPED),
    ],
)
def test_the_end_of_a_copy_moves_its_table(
    run: TableRun, results: list[CopiedTable | CopyFailed], phase: Phase
) -> None:
    run.table.least_position = Lsn(10)
    run.loads.load(run.table, "new table")
    for result in results:
        run.step(result)
    assert run.table.phase.name is phase
    assert len(run.warnings) == (phase is Phase.STOPPED)


def follow(run: TableRun) -> None:
    run.loads.load(run.table, "new table")
    follow_copied(run)


def follow_copied(run: TableRun) -> None:
    run.step(copied())
    run.end_job()
    assert run.table.phase.name is Phase.FOLLOWING


def test_partitions_are_put_in_among_changes_that_stay_buffered(run: TableRun) -> None:
    follow(run)
    run.writer.did.clear()
    run.loads.load(run.table, "a partition with rows was attached", [7])
    pending = PartitionsLoad(FOLDER, "a partition with rows was attached", (7,))
    assert run.table.pending == run.writer.saved[-1] == pending
    assert run.table.is_whole
    assert run.table.copy is not None
    assert run.loader.wanted[-1][T].proven_spec is run.table.copy.stored.table
    of_partitions = replace(copied(), catalog_table=SPEC)
    run.step(CopyFailed(T, "no", may_retry=True))
    assert run.table.phase.name is Phase.QUEUED
    run.step(of_partitions)
    run.end_job()
    assert (run.table.phase.name, run.writer.did) == (Phase.FOLLOWING, ["put in"])


def test_a_process_that_ends_leaves_partitions_to_the_next_one(run: TableRun) -> None:
    follow(run)
    run.writer.is_ending = True
    run.loads.load(run.table, "a partition with rows was attached", [7])
    run.step(replace(copied(), catalog_table=SPEC))
    run.end_job()
    assert run.table.phase.name is Phase.CATCHING_UP
    assert isinstance(run.table.pending, PartitionsLoad)


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
    stops: list[Callable[[], object]] = [
        lambda: run.stops.expire([run.table]),
        lambda: run.failures.run(run.table, fail(ZeroDivisionError())),
    ]
    for stop in stops:
        run.failures.run(run.table, fail(RefusedCommit(Lsn(9), ValueError("infinity"))))
        assert run.table.phase.name is Phase.HELD
        stop()
        assert run.table.phase.name is Phase.STOPPED
        assert not run.table.is_refused
        run.loads.load(run.table, ASKED_FOR)
        run.step(copied())
        run.end_job()
        assert run.table.phase.name is Phase.FOLLOWING


def test_a_frequent_reload_waits_until_it_is_due_or_requested(run: TableRun) -> None:
    for _ in range(2):
        run.loads.load(run.table, "its columns changed")
        follow_copied(run)
    begun = len(run.loader.wanted)
    for reason in ("its columns changed", "another reason", "another reason"):
        # A load that waits already is counted once.
        run.loads.load(run.table, reason)
        run.step()
        assert (run.table.phase.name, len(run.loader.wanted), run.limiter.loads_left) == (Phase.QUEUED, begun, -1)
        assert f"({reason}): to spare the server, the next load begins at 20" in str(run.table.postponed)
        assert run.warnings[-1] == f"public.t: {run.table.postponed}"
        assert run.table.state(Lsn(1), 1, None).error == run.table.postponed
    assert sum("next load begins" in warning for warning in run.warnings) == 2
    # So it is after a restart.
    assert isinstance(run.table.phase, Queued)
    run.loads.queue(run.table, run.table.phase)
    assert len(run.loader.wanted) == begun
    run.loads.load(run.table, ASKED_FOR)
    assert (len(run.loader.wanted), run.table.postponed) == (begun + 1, None)
    follow_copied(run)
    run.limiter.loads_left, run.limiter.pause = 0, 0.05
    run.loads.load(run.table, "its columns changed")
    assert len(run.loader.wanted) == begun + 1

    def has_begun() -> bool:
        run.step()
        return len(run.loader.wanted) == begun + 2

    eventually(has_begun)
    follow_copied(run)
    assert run.table.postponed is None


def test_a_table_that_must_not_be_loaded_stops(run: TableRun) -> None:
    run.refusal = "it had masks"
    run.loads.load(run.table, "new table")
    assert (run.table.phase.name, run.loader.wanted) == (Phase.STOPPED, [])
