"""The engine that chooses: what runs in this process, when the other engine starts, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.observe.events import RunEvent, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines import start
from logicalrep.pipeline.engines.by_size import BySizeEngine
from logicalrep.pipeline.engines.engine import Engine, EngineError
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.start import start_engine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.retries import Ended
from tests.pipeline.comparison import find_differences
from tests.pipeline.engines.following import check_that_tables_follow
from tests.pipeline.replicating import TABLES
from tests.postgres.servers import Database
from tests.waiting import eventually

Start = Callable[[threading.Event], AbstractContextManager[Engine]]

LIMITS = Limits()


def _local(_: threading.Event) -> LocalEngine:
    return LocalEngine(1)


def _pid(item: object) -> int:
    return os.getpid()


@contextmanager
def _never(_: threading.Event) -> Iterator[Engine]:
    raise AssertionError("there is no work for the other engine")
    yield


@pytest.mark.slow
def test_little_work_runs_in_this_process_and_other_work_elsewhere() -> None:
    with BySizeEngine(_local, threading.Event(), "needed", LIMITS) as engine:
        assert engine.run(_pid, [1, 2], LIMITS.in_process_bytes) == [os.getpid()] * 2
        assert engine.run_together(_pid, 1, LIMITS.in_process_bytes) == os.getpid()
        assert os.getpid() not in engine.run(_pid, [1, 2], LIMITS.in_process_bytes + 1)
        assert engine.run_together(_pid, 1, LIMITS.in_process_bytes + 1) != os.getpid()
        with engine.share("x") as shared:
            assert shared.value == "x"


def test_the_other_engine_starts_beside_or_before_or_once_it_is_needed() -> None:
    with BySizeEngine(_never, threading.Event(), "needed", LIMITS) as engine:
        assert engine.run(len, ["a"], 1) == [1]
        engine.check()
    started = threading.Event()

    def begin(_: threading.Event) -> LocalEngine:
        started.set()
        return LocalEngine(1)

    with BySizeEngine(begin, threading.Event(), "beside", LIMITS) as engine:
        eventually(started.is_set)
        engine.check()
    started.clear()
    with BySizeEngine(begin, threading.Event(), "now", LIMITS) as engine:
        assert started.is_set()
        assert engine.run(len, ["a"], LIMITS.in_process_bytes + 1) == [1]


def test_a_run_that_ends_soon_says_once_that_it_starts_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "find_spark", lambda: None)
    monkeypatch.setattr(start, "start_spark", lambda *of_start: LocalEngine(1))
    settings = ReplicateSettings(dsn="dbname=x", to=str(tmp_path), engine="spark", once=True)
    messages: list[str] = []

    class Told(Observer):
        def on_event(self, event: RunEvent) -> None:
            match event:
                case WaitReported(text):
                    messages.append(text)

    with start_engine(settings, Storage(str(tmp_path)), threading.Event(), Told()) as engine:
        assert engine.run(len, ["a"], LIMITS.in_process_bytes) == [1]
        assert messages == []
        for _ in range(2):
            assert engine.run(len, ["a"], LIMITS.in_process_bytes + 1) == [1]
    assert messages == ["starting Spark, for work of more than 8 MB"]


def test_a_failed_start_of_an_engine_is_reported_before_it_has_work() -> None:
    @contextmanager
    def fails(_: threading.Event) -> Iterator[Engine]:
        raise EngineError("no Java")
        yield

    with BySizeEngine(fails, threading.Event(), "beside", LIMITS) as engine:

        def is_told() -> bool:
            try:
                engine.check()
            except EngineError as error:
                return "no Java" in str(error)
            return False

        eventually(is_told)
        assert engine.run(len, ["a"], 1) == [1]
        with pytest.raises(EngineError, match="no Java"):
            engine.run(len, ["a"], LIMITS.in_process_bytes + 1)
    with pytest.raises(EngineError, match="no Java"), BySizeEngine(fails, threading.Event(), "now", LIMITS):
        pass


def test_nobody_waits_for_a_start_after_the_end_was_asked_for() -> None:
    stop, begun = threading.Event(), threading.Event()

    @contextmanager
    def starts_for_ever(ending: threading.Event) -> Iterator[Engine]:
        begun.set()
        ending.wait()
        raise Ended
        yield

    with ThreadPoolExecutor(1) as pool, BySizeEngine(starts_for_ever, stop, "needed", LIMITS) as engine:
        waiting = pool.submit(engine.run, len, ["a"], LIMITS.in_process_bytes + 1)
        eventually(begun.is_set)
        stop.set()
        assert isinstance(waiting.exception(60), Ended)


def test_little_work_has_few_threads_of_a_kind() -> None:
    running, most = [0], [0]
    lock, full = threading.Lock(), threading.Event()

    def work(_: int) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 2:
                full.set()
        full.wait()
        with lock:
            running[0] -= 1

    with (
        BySizeEngine(_never, threading.Event(), "needed", replace(LIMITS, calls=2)) as engine,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda number: engine.run_together(work, number, 1), range(24)))
    assert most == [2]


def test_tables_are_the_same_if_some_work_runs_elsewhere(shop: Database, tmp_path: Path) -> None:
    limits = replace(LIMITS, in_process_bytes=2000)
    with BySizeEngine(_local, threading.Event(), "needed", limits) as engine:
        check_that_tables_follow(engine, shop, tmp_path)


_ONCE = """
import sys
import logicalrep
logicalrep.replicate(sys.argv[1], sys.argv[2], engine="spark", once=True)
print(sorted({"pyspark", "py4j"} & set(sys.modules)))
"""


def test_a_run_with_little_to_do_does_not_import_spark(shop: Database, tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _ONCE, shop.dsn, str(tmp_path)],
            capture_output=True, text=True, check=False, timeout=600, env=os.environ | {"JAVA_HOME": "/nonexistent"},
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
