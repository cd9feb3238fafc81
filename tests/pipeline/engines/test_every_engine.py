"""What every engine must do, sentence by sentence of `Engine`: in this process, in processes, on Spark's executors."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from logicalrep.observe.counts import Stopwatch
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.by_size import BySizeEngine
from logicalrep.pipeline.engines.engine import Engine, EngineError, SequentialEngine, Shared
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.outcomes import TableFailedError
from logicalrep.pipeline.engines.spark.connect import ConnectJobs
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs
from logicalrep.pipeline.engines.timed import TimedEngine
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.engines.following import check_that_tables_follow
from tests.pipeline.histories import History
from tests.pipeline.stored import APP, new_log, rows_at
from tests.postgres.servers import Database
from tests.waiting import eventually

pytestmark = pytest.mark.slow

NBYTES = 100
"""The size that tests say of their items: little work, and more than that for the engine `elsewhere`."""
SPARK = ("spark", "connect")


def _by_size(limits: Limits) -> BySizeEngine:
    return BySizeEngine(lambda _: LocalEngine(2, limits), threading.Event(), "needed", limits)


@pytest.fixture(scope="module")
def local_engines() -> Iterator[dict[str, Engine]]:
    """Yield the engines of this machine, whose processes start once: they import for a second."""
    limits = Limits()
    with (
        LocalEngine(2) as local,
        _by_size(limits) as here,
        BySizeEngine(lambda _: local, threading.Event(), "needed", replace(limits, in_process_bytes=10)) as elsewhere,
    ):
        yield {"local": local, "here": here, "elsewhere": TimedEngine(elsewhere, Stopwatch())}


ON_SPARK = [pytest.param(name, marks=[pytest.mark.spark, pytest.mark.thorough]) for name in SPARK]


@pytest.fixture(params=["local", "here", "elsewhere", *ON_SPARK])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if name == "spark":
        yield SparkEngine(ClassicJobs(request.getfixturevalue("spark")))
    elif name == "connect":
        with ConnectJobs(request.getfixturevalue("connect"), Storage(str(tmp_path / "lake"))) as jobs:
            yield SparkEngine(jobs)
    else:
        yield request.getfixturevalue("local_engines")[name]


def run_each(engine: Engine, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Return each item's result or error, each of an own thread's call of `run_together`."""
    with ThreadPoolExecutor(len(items)) as pool:
        calls = [pool.submit(engine.run_together, function, item, NBYTES) for item in items]
        return [call.exception() or call.result() for call in calls]


# Results


def _reverse_late(item: tuple[int, bytes]) -> bytes:
    """The items that come first take longest."""
    time.sleep(item[0] / 1000)
    return item[1][::-1]


def test_results_are_in_the_order_of_the_items(engine: Engine) -> None:
    assert engine.run(len, [], NBYTES) == []
    assert engine.run(len, ["abc"], NBYTES) == [3]
    items = [(20 - number, bytes([number, 255])) for number in range(20)]
    assert engine.run(_reverse_late, items, NBYTES) == [bytes([255, number]) for number in range(20)]
    assert run_each(engine, _reverse_late, items) == [bytes([255, number]) for number in range(20)]


def test_large_items_and_results_come_whole(engine: Engine) -> None:
    items = [(0, random.Random(number).randbytes(4 << 20)) for number in range(3)]
    results = [data[::-1] for _, data in items]
    assert engine.run(_reverse_late, items, sum(len(data) for _, data in items)) == results
    assert run_each(engine, _reverse_late, items) == results


def _wait_for(path: str) -> str:
    Path(path).with_suffix(".begun").touch()
    eventually(Path(path).exists)
    return "has waited"


def test_a_thread_waits_for_its_own_items_alone(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "end"
    with ThreadPoolExecutor(2) as pool:
        try:
            waiting = pool.submit(engine.run, _wait_for, [str(path)], NBYTES)
            eventually(path.with_suffix(".begun").exists)
            assert engine.run_together(len, "ab", NBYTES) == 2
            assert engine.run(len, ["abc"], NBYTES) == [3]
            engine.check()
            assert not waiting.done()
        finally:
            path.touch()
        assert waiting.result() == ["has waited"]


# Errors


class _TwoPartError(LogicalRepError):
    """An error that cannot be unpickled."""

    code = "TABLE_DAMAGED"

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def _work(number: int) -> int:
    if number == 10:
        # The error's code differs from its class's code.
        error = EngineError("10 has no library", code="ENGINE_MISSING")
        error.add_note("the note of 10")
        raise error
    if number == 11:
        raise _TwoPartError("11", "12")
    if number == 13:
        raise DamagedError("13 is missing")
    if number == 14:
        raise psycopg.errors.LockNotAvailable("14 is locked")
    return 100 // number


ERRORS = {
    10: (EngineError, "ENGINE_MISSING", "10 has no library", "the note of 10"),
    11: (LogicalRepError, "", "11 and 12", ""),
    13: (DamagedError, "TABLE_DAMAGED", "13 is missing", ""),
    14: (psycopg.errors.LockNotAvailable, "", "14 is locked", ""),
    0: (TableFailedError, "TABLE_FAILED", "ZeroDivisionError: integer division or modulo by zero", "Traceback"),
}


def check_error(error: BaseException, number: int) -> None:
    kind, code, text, note = ERRORS[number]
    assert isinstance(error, kind)
    assert kind is LogicalRepError or type(error) is kind
    assert text in str(error)
    assert getattr(error, "code", "") == code or not code
    assert note in "\n".join(getattr(error, "__notes__", []))


@pytest.mark.parametrize("number", ERRORS)
def test_an_error_is_its_items_alone(engine: Engine, number: int) -> None:
    *results, error = run_each(engine, _work, [1, 2, 4, 5, number])
    assert results == [100, 50, 25, 20]
    check_error(error, number)
    with pytest.raises(Exception, match=r".") as raised:
        engine.run(_work, [1, number, 2], NBYTES)
    check_error(raised.value, number)
    assert engine.run(_work, [1, 2], NBYTES) == [100, 50]


def _fail_late(item: tuple[int, float]) -> int:
    time.sleep(item[1])
    return _work(item[0])


def test_the_first_error_in_the_order_of_the_items_is_raised(engine: Engine) -> None:
    with pytest.raises(DamagedError):
        engine.run(_fail_late, [(1, 0), (13, 0.2), (0, 0)], NBYTES)
    with pytest.raises(TableFailedError, match="ZeroDivisionError"):
        engine.run(_fail_late, [(0, 0.2), (13, 0), (14, 0)], NBYTES)


def _unpicklable(item: object) -> Callable[[], object]:
    return lambda: item


def test_a_result_that_cannot_be_pickled_is_an_error_of_its_item(engine: Engine, name: str) -> None:
    if name == "here":
        pytest.skip("results of this process are not pickled")
    with pytest.raises(TableFailedError, match="pickle"):
        engine.run(_unpicklable, [1], NBYTES)


def _fail_for_ever(item: tuple[str, str]) -> int:
    """Count the tries of an item in a file."""
    kind, path = item
    with Path(path).open("a") as file:
        file.write("x")
    if kind == "OSError":
        raise OSError(28, "No space left on device")
    if kind == "MemoryError":
        raise MemoryError("no memory for this")
    if kind == "exit":
        os._exit(3)
    return 1


TEXTS = {"OSError": "No space left on device$", "MemoryError": "no memory for this$", "exit": "exit"}


@pytest.mark.parametrize("kind", TEXTS)
def test_what_another_try_may_mend_is_tried_a_few_times(engine: Engine, name: str, tmp_path: Path, kind: str) -> None:
    if (kind, name) == ("exit", "here"):
        pytest.skip("this process would end")
    path = tmp_path / "tries"
    with pytest.raises(EngineError, match=TEXTS[kind]) as raised:
        engine.run(_fail_for_ever, [(kind, str(path))], NBYTES)
    assert type(raised.value) is EngineError
    begin = "Spark could not run a task: " if name in SPARK else r"(a|this) process could not run a task, 4 times: "
    assert raised.match(rf"^\[TASKS_FAILED\] {begin}")
    # A local session of Spark tries once.
    assert path.read_text() == "x" * (1 if name in SPARK else 4)
    assert engine.run(_work, [1, 2], NBYTES) == [100, 50]


@pytest.mark.parametrize("kind", ["OSError", "exit"])
def test_an_item_that_cannot_run_fails_no_other_threads_item(
    engine: Engine, name: str, tmp_path: Path, kind: str
) -> None:
    if (kind, name) == ("exit", "here"):
        pytest.skip("this process would end")
    kinds = ["none"] * 20
    kinds[7] = kind
    results = run_each(engine, _fail_for_ever, [(kind, str(tmp_path / f"{i}")) for i, kind in enumerate(kinds)])
    assert type(results.pop(7)) is EngineError
    assert results == [1] * 19


# Shared values


class _Counted:
    """A value that notes each process that unpickles it."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        with Path(self.path).open("a") as file:
            file.write(f"{os.getpid()}\n")


@dataclass(frozen=True)
class _Part:
    shared: Shared[_Counted]
    number: int


def _of_shared(part: _Part) -> int:
    return part.shared.value.data[part.number]


def test_each_process_gets_a_shared_value_once(engine: Engine, tmp_path: Path) -> None:
    for number in range(2):
        path, data = tmp_path / f"{number}", random.Random(number).randbytes(1 << 20)
        with engine.share(_Counted(str(path), data)) as shared:
            assert shared.value.data == data
            assert len(pickle.dumps(shared)) < 2000
            parts = [_Part(shared, index) for index in range(20)]
            assert engine.run(_of_shared, parts, NBYTES) == [*data[:20]]
            assert run_each(engine, _of_shared, parts) == [*data[:20]]
        processes = Counter(path.read_text().split()) if path.exists() else {}
        assert {*processes.values()} <= {1}
        assert str(os.getpid()) not in processes


# Interruption and end


class _InterruptedError(BaseException):
    """The interruption of a thread."""


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Yield a function that interrupts the main thread."""

    def handle(*_: object) -> None:
        raise _InterruptedError

    main = threading.get_ident()
    handler = signal.signal(signal.SIGUSR1, handle)
    yield lambda: signal.pthread_kill(main, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, handler)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals interrupt the main thread alone"
)
@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupted_call_leaves_no_answer_for_the_next(
    engine: Engine, name: str, interrupt: Callable[[], None], tmp_path: Path, count: int
) -> None:
    if name in SPARK:
        pytest.skip("Spark's own handler of signals ends all jobs")
    path = tmp_path / "end"
    with ThreadPoolExecutor(1) as pool:

        def interrupt_soon() -> None:
            eventually(path.with_suffix(".begun").exists)
            interrupt()

        interruption = pool.submit(interrupt_soon)
        try:
            with pytest.raises(_InterruptedError):
                engine.run(_wait_for, [str(path)] * count, NBYTES)
        finally:
            path.touch()
        interruption.result()
    assert engine.run(_work, [1, 2, 4, 5] * 3, NBYTES) == [100, 50, 25, 20] * 3
    assert run_each(engine, _work, [1, 2, 4, 5]) == [100, 50, 25, 20]


def _sleep(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    signal.pause()


def _local_of_one() -> AbstractContextManager[Engine]:
    return LocalEngine(1)


def _by_size_of_one() -> AbstractContextManager[Engine]:
    return BySizeEngine(lambda _: LocalEngine(1), threading.Event(), "needed", Limits(in_process_bytes=10))


@pytest.mark.parametrize("start", [_local_of_one, _by_size_of_one], ids=["local", "by size"])
def test_the_end_ends_processes_and_whoever_waits_for_them(
    start: Callable[[], AbstractContextManager[Engine]], tmp_path: Path
) -> None:
    threads = {*threading.enumerate()}
    with ThreadPoolExecutor(4) as pool:
        with start() as engine:
            first = pool.submit(engine.run_together, _sleep, str(tmp_path), NBYTES)
            eventually(lambda: bool(list(tmp_path.iterdir())))
            calls: list[Future[Any]] = [
                first,
                *(pool.submit(engine.run, _sleep, [str(tmp_path)] * 2, NBYTES) for _ in range(2)),
                pool.submit(engine.run_together, _sleep, str(tmp_path), NBYTES),
            ]
            pids = [int(path.name) for path in tmp_path.iterdir()]
        for call in calls:
            error = call.exception(60)
            assert type(error) is EngineError
            assert "has ended" in str(error)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert {*threading.enumerate()} <= threads
    check_that_it_has_ended(engine)


def check_that_it_has_ended(engine: Engine) -> None:
    for items in (["a"], ["a", "b"]):
        with pytest.raises(EngineError, match="has ended"):
            engine.run(len, items, NBYTES)
    with pytest.raises(EngineError, match="has ended"):
        engine.check()


@pytest.mark.parametrize("start", [_local_of_one, _by_size_of_one], ids=["local", "by size"])
def test_an_engine_that_ended_before_its_first_item_starts_nothing(
    start: Callable[[], AbstractContextManager[Engine]],
) -> None:
    with start() as engine:
        engine.check()
    check_that_it_has_ended(engine)


# Tables


def test_many_files_of_a_table_are_rewritten(engine: Engine, tmp_path: Path) -> None:
    limits = Limits(in_process_bytes=2000, part_bytes=2000, file_rows=7, small_file_bytes=1)
    storage = Storage(str(tmp_path / "lake"), limits=limits)
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(7))
    # Other processes have modules of their own: the first batch makes the files.
    for runner in (SequentialEngine(), *itertools.repeat(engine, 2)):
        for _ in range(60):
            history.step()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), runner)
        assert rows_at(storage) == history.truth()


def test_tables_are_loaded_and_followed(engine: Engine, shop: Database, tmp_path: Path) -> None:
    check_that_tables_follow(engine, shop, tmp_path / "lake")
