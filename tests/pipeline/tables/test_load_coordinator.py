"""A table's phases while it loads, without a server: what is queued, copied, tried again, stopped, and follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
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
from logicalrep.pipeline.formats.stored_table import Head
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest
from logicalrep.pipeline.storage.storage import StorageError
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.pipeline.tables.lifecycle import LifecycleError
from logicalrep.pipeline.tables.load_coordinator import LoadCoordinator
from logicalrep.pipeline.tables.phases import CatchingUp, CatchUp, Copy, Queued
from logicalrep.pipeline.tables.stops import TableStops
from logicalrep.pipeline.tables.table import Table
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, TimestampTz
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
    """A destination that remembers what it is told; `behind` is how often the catalog lacks transactions."""

    behind: int = 0
    is_ending: bool = False
    did: list[str] = field(default_factory=list)
    saved: list[PendingLoad] = field(default_factory=list)

    def save_pending_load(self, pending: PendingLoad) -> None:
        self.saved.append(pending)

    def hold(self, table: Table, lsn: Lsn) -> HeldCommit:
        return HeldCommit(table.folder, str(lsn), 0.0)

    def hold_no_more(self, table: Table) -> BufferedChanges:
        return BufferedChanges(table.folder, "")

    def clear(self, table: Table) -> None:
        self.did.append("clear")

    def write_stopped(self, table: Table) -> None:
        self.did.append("stopped")

    def take_table(self, table: Table, loaded: CopiedTable, work: CatchUp) -> Copy:
        self.did.append("replace")
        log = SimpleNamespace(
            load=loaded.load,
            table=SimpleNamespace(relation=SimpleNamespace(relation_id=2), skipped=()),
            applied=lambda application: Lsn(5),
            head=Head(1, None),
            files={},
            folder=FOLDER,
        )
        work.copy = Copy(cast(Any, log), "application")
        return work.copy

    def take_partitions(self, table: Table, copy: Copy, now: object, loaded: CopiedTable, work: CatchUp) -> Copy | None:
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


class Fixture:
    """All that moves a table, over a destination and a loader that do nothing."""

    def __init__(self, pool: ThreadPoolExecutor, *, refused: str | None = None) -> None:
        self.warnings: list[str] = []
        settings = SimpleNamespace(keep=1.0)
        context = cast(Any, SimpleNamespace(observer=self, limits=Limits(), settings=settings, patience=self))
        self.writer, self.loader, self.table = Writer(), LoadQueue(), Table(T, "public/t", 1)
        guard = SimpleNamespace(reason=lambda oid, name: refused, numbers=lambda oid: {})
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
def pool() -> Any:
    with ThreadPoolExecutor(1) as made:
        yield made


def copied(position: int = 100, oid: int = 1) -> CopiedTable:
    spec = cast(Any, SimpleNamespace(relation=SimpleNamespace(relation_id=oid)))
    return CopiedTable(T, spec, Lsn(position), [], "load 1", TimestampTz(0))


def test_a_table_is_queued_copied_catches_up_and_follows(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool)
    with_.writer.behind = 1
    with_.loads.load(with_.table, "new table")
    assert (with_.table.phase.name, with_.writer.did, len(with_.loader.wanted)) == (Phase.QUEUED, ["clear"], 1)
    with_.step()
    assert with_.table.phase.name is Phase.QUEUED
    with_.loader.copying[T] = object()
    with_.step()
    assert with_.table.phase.name is Phase.COPYING
    with_.step(copied())
    assert with_.table.phase.name is Phase.CATCHING_UP
    with_.end_job()
    # The catalog does not have all transactions of the buffered changes.
    assert with_.table.phase.name is Phase.CATCHING_UP
    with_.end_job()
    assert with_.table.phase.name is Phase.FOLLOWING
    assert with_.writer.did == ["clear", "replace", "apply"]


@pytest.mark.parametrize(
    ("results", "phase"),
    [
        ([copied()], Phase.CATCHING_UP),
        # Another table has the name by now.
        ([copied(oid=2)], Phase.QUEUED),
        ([copied(position=9)], Phase.QUEUED),
        ([CopyFailed(T, "no", again=True)], Phase.QUEUED),
        ([CopyFailed(T, "no", again=False)], Phase.STOPPED),
        ([CopyFailed(T, f"no {number}", again=True) for number in range(Limits().load_tries)], Phase.STOPPED),
        ([CopyFailed(T, "away", again=True, is_own=False)] * 20, Phase.QUEUED),
        # One that was given up is no result any more.
        ([CopyFailed(T, "no", again=False), copied()], Phase.STOPPED),
    ],
)
def test_the_end_of_a_copy_moves_its_table(
    pool: ThreadPoolExecutor, results: list[CopiedTable | CopyFailed], phase: Phase
) -> None:
    with_ = Fixture(pool)
    with_.table.least = Lsn(10)
    with_.loads.load(with_.table, "new table")
    for result in results:
        with_.step(result)
    assert with_.table.phase.name is phase
    assert len(with_.warnings) == (phase is Phase.STOPPED)


def follow(with_: Fixture) -> None:
    with_.loads.load(with_.table, "new table")
    follow_copied(with_)


def follow_copied(with_: Fixture) -> None:
    with_.step(copied())
    with_.end_job()
    assert with_.table.phase.name is Phase.FOLLOWING


def test_partitions_are_put_in_among_changes_that_stay_buffered(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool)
    follow(with_)
    with_.writer.did.clear()
    with_.loads.load(with_.table, "a partition with rows was attached", [7])
    pending = PartitionsLoad(FOLDER, "a partition with rows was attached", (7,))
    assert with_.table.pending == with_.writer.saved[-1] == pending
    assert with_.table.is_whole
    assert with_.table.copy is not None
    assert with_.loader.wanted[-1][T].before is with_.table.copy.stored.table
    of_partitions = replace(copied(), now=cast(Any, "the table in the catalog"))
    with_.step(CopyFailed(T, "no", again=True))
    assert with_.table.phase.name is Phase.QUEUED
    with_.step(of_partitions)
    with_.end_job()
    assert (with_.table.phase.name, with_.writer.did) == (Phase.FOLLOWING, ["put in"])


def test_a_process_that_ends_leaves_partitions_to_the_next_one(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool)
    follow(with_)
    with_.writer.is_ending = True
    with_.loads.load(with_.table, "a partition with rows was attached", [7])
    with_.step(replace(copied(), now=cast(Any, "the table in the catalog")))
    with_.end_job()
    assert with_.table.phase.name is Phase.CATCHING_UP
    assert isinstance(with_.table.pending, PartitionsLoad)


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
    pool: ThreadPoolExecutor, error: Exception, phase: Phase, refused: str | None
) -> None:
    with_ = Fixture(pool)
    follow(with_)
    assert with_.failures.run(with_.table, fail(error)) is None
    assert with_.table.phase.name is phase
    assert with_.table.state(Lsn(9), 1, None).refused == refused
    assert (with_.table.stopped is None) == (phase is Phase.QUEUED)


def test_an_error_of_all_tables_is_raised_and_moves_none(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool)
    follow(with_)
    with pytest.raises(StorageError):
        with_.failures.run(with_.table, fail(StorageError("it is away")))
    assert with_.table.phase.name is Phase.FOLLOWING


def test_a_held_table_is_stopped_by_time_or_another_error_and_loads_when_asked_for(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool)
    follow(with_)
    stops: list[Callable[[], object]] = [
        lambda: with_.stops.expire([with_.table]),
        lambda: with_.failures.run(with_.table, fail(ZeroDivisionError())),
    ]
    for stop in stops:
        with_.failures.run(with_.table, fail(RefusedCommit(Lsn(9), ValueError("infinity"))))
        assert with_.table.phase.name is Phase.HELD
        stop()
        assert with_.table.phase.name is Phase.STOPPED
        assert not with_.table.is_refused
        with_.loads.load(with_.table, ASKED_FOR)
        with_.step(copied())
        with_.end_job()
        assert with_.table.phase.name is Phase.FOLLOWING


def test_a_frequent_reload_waits_until_it_is_due_or_requested(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool)
    for _ in range(2):
        with_.loads.load(with_.table, "its columns changed")
        follow_copied(with_)
    begun = len(with_.loader.wanted)
    for reason in ("its columns changed", "another reason", "another reason"):
        # A load that waits already is counted once.
        with_.loads.load(with_.table, reason)
        with_.step()
        assert (with_.table.phase.name, len(with_.loader.wanted), with_.limiter.loads_left) == (Phase.QUEUED, begun, -1)
        assert f"({reason}): to spare the server, the next load begins at 20" in str(with_.table.postponed)
        assert with_.warnings[-1] == f"public.t: {with_.table.postponed}"
        assert with_.table.state(Lsn(1), 1, None).error == with_.table.postponed
    assert sum("next load begins" in warning for warning in with_.warnings) == 2
    # So it is after a restart.
    assert isinstance(with_.table.phase, Queued)
    with_.loads.queue(with_.table, with_.table.phase)
    assert len(with_.loader.wanted) == begun
    with_.loads.load(with_.table, ASKED_FOR)
    assert (len(with_.loader.wanted), with_.table.postponed) == (begun + 1, None)
    follow_copied(with_)
    with_.limiter.loads_left, with_.limiter.pause = 0, 0.05
    with_.loads.load(with_.table, "its columns changed")
    assert len(with_.loader.wanted) == begun + 1

    def has_begun() -> bool:
        with_.step()
        return len(with_.loader.wanted) == begun + 2

    eventually(has_begun)
    follow_copied(with_)
    assert with_.table.postponed is None


def test_a_table_that_must_not_be_loaded_stops(pool: ThreadPoolExecutor) -> None:
    with_ = Fixture(pool, refused="it had masks")
    with_.loads.load(with_.table, "new table")
    assert (with_.table.phase.name, with_.loader.wanted) == (Phase.STOPPED, [])
