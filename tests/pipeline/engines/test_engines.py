"""The engines: what one does the others do, in this process, on Spark's executors, or in processes of this machine."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import psycopg
import pyarrow as pa
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import Engine, EngineError, SequentialEngine, Shared
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.outcomes import TableFailedError
from logicalrep.pipeline.engines.spark.connect import ConnectJobs
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.engines.following import check_that_tables_follow
from tests.pipeline.histories import History
from tests.pipeline.stored import APP, new_log, rows_at
from tests.postgres.servers import Database
from tests.waiting import eventually


@pytest.fixture(
    params=[
        "local",
        pytest.param("spark", marks=pytest.mark.spark),
        pytest.param("connect", marks=[pytest.mark.spark, pytest.mark.thorough]),
    ]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "spark":
        yield SparkEngine(ClassicJobs(request.getfixturevalue("spark")))
    elif request.param == "connect":
        with ConnectJobs(request.getfixturevalue("connect"), Storage(str(tmp_path))) as jobs:
            yield SparkEngine(jobs)
    else:
        yield request.getfixturevalue("two")


@pytest.fixture(scope="module")
def two() -> Iterator[LocalEngine]:
    """Yield an engine of two processes, which start once: they import for a second."""
    with LocalEngine(2) as made:
        yield made


def _work(number: int) -> int:
    if number == 13:
        error = DamagedError("13 is not there")
        error.add_note("the note of 13")
        raise error
    if number == 14:
        raise psycopg.errors.LockNotAvailable("14 is locked")
    return 100 // number


@dataclass(frozen=True)
class _Part:
    shared: Shared[list[str]]
    number: int


def _of_shared(part: _Part) -> str:
    return part.shared.value[part.number]


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (13, DamagedError, "13 is not there"),
        (14, psycopg.errors.LockNotAvailable, "14 is locked"),
        (0, TableFailedError, "ZeroDivisionError"),
    ],
)
def test_an_error_is_that_of_its_item_alone(engine: Engine, number: int, kind: type[Exception], text: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        futures = {each: pool.submit(engine.run_together, _work, each, 100) for each in (1, 2, number, 4, 5)}
        error = futures.pop(number).exception()
        assert {each: future.result() for each, future in futures.items()} == {1: 100, 2: 50, 4: 25, 5: 20}
    assert type(error) is kind
    assert text in str(error)
    if number != 14:
        assert any(note in getattr(error, "__notes__", [""])[0] for note in ("the note of 13", "Traceback"))
    with pytest.raises(kind):
        engine.run(_work, [1, number, 2], 0)


def test_many_items_have_a_shared_value(engine: Engine) -> None:
    assert engine.run(_work, [], 0) == []
    for letters in ("abcdef", "ghijkl"):
        with engine.share(list(letters)) as shared:
            assert engine.run(_of_shared, [_Part(shared, number) for number in range(6)], 0) == list(letters)


@pytest.mark.skipif(sys.platform != "linux", reason="Other systems have no way to open a file without a name again.")
def test_nothing_of_a_shared_value_stays_after_a_kill(
    two: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with two.share(list("abcdef")) as shared:
        assert two.run(_of_shared, [_Part(shared, 3)], 0) == ["d"]
        assert list(tmp_path.iterdir()) == []


def test_many_files_of_a_table_are_rewritten(engine: Engine, tmp_path: Path) -> None:
    limits = Limits(in_process_bytes=2000, part_bytes=2000, file_rows=7, small_file_bytes=1)
    storage = Storage(str(tmp_path), limits=limits)
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(7))
    for number in range(3):
        for _ in range(60):
            history.step()
        # Other processes have modules of their own: the first batch makes the files.
        runner = SequentialEngine() if number == 0 else engine
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), runner)
        assert rows_at(storage) == history.truth()


def test_tables_are_loaded_and_followed(engine: Engine, shop: Database, tmp_path: Path) -> None:
    check_that_tables_follow(engine, shop, tmp_path)


def _end(path: str) -> str:
    """End the process at the first three calls with a file, and return its contents at the fourth."""
    with Path(path).open("a") as file:
        file.write("x")
    if len(Path(path).read_text()) < 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return Path(path).read_text()


def _is_full(path: str) -> str:
    with Path(path).open("a") as file:
        file.write("x")
    raise OSError(28, "No space left on device")


def test_an_item_whose_process_ends_is_tried_again_a_few_times(two: LocalEngine, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(two.run_together, _work, 10, 1) for _ in range(20)]
        assert two.run(_end, [str(tmp_path / "ended")], 0) == ["xxxx"]
        assert {each.result() for each in others} == {10}
    with pytest.raises(EngineError, match=r"\[TASKS_FAILED\] .* 4 times: it ended with exit code 3"):
        two.run(os._exit, [3], 0)
    with pytest.raises(EngineError, match=r"4 times: OSError: .*No space left"):
        two.run(_is_full, [str(tmp_path / "full")], 0)
    assert (tmp_path / "full").read_text() == "xxxx"
    assert two.run(_work, [1, 2], 0) == [100, 50]


def _rendezvous(folder: str) -> int:
    """Wait until another process does the same."""
    Path(folder, str(os.getpid())).touch()
    eventually(lambda: len(list(Path(folder).iterdir())) == 2)
    return os.getpid()


def test_items_run_at_the_same_time_in_the_same_few_processes(two: LocalEngine, tmp_path: Path) -> None:
    pids = set(two.run(_rendezvous, [str(tmp_path)] * 2, 0))
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert set(two.run(_rendezvous, [str(tmp_path)] * 6, 0)) <= pids


def _pid(item: bytes) -> int:
    return os.getpid()


def _alone(path: str) -> None:
    """Fail if another process does the same at the same time."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    time.sleep(0.02)
    os.unlink(path)


def test_large_items_do_not_run_together_and_very_large_ones_in_this_process(tmp_path: Path) -> None:
    limits = Limits(sent_bytes=900, sent_at_once_bytes=1000)
    with LocalEngine(2, limits) as two, ThreadPoolExecutor(4) as pool:
        assert two.run_together(_pid, b"", 901) == os.getpid()
        assert two.run_together(_pid, b"", 900) != os.getpid()
        for nbytes in (900, 901):
            with pytest.raises(TableFailedError, match="ZeroDivisionError"):
                two.run_together(_work, 0, nbytes)
        for each in [pool.submit(two.run_together, _alone, str(tmp_path / "one"), 600) for _ in range(8)]:
            each.result()


def _sleep(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    signal.pause()


@pytest.mark.skipif(sys.platform != "linux", reason="a process reads its memory in /proc")
def test_a_process_keeps_no_memory_of_items_that_are_done() -> None:
    with LocalEngine(1) as one:
        (before,) = one.run(_memory, [0], 0)
        (while_held,) = one.run(_memory, [_HELD], 0)
        assert while_held > before + _HELD
        eventually(lambda: one.run(_memory, [0], 0)[0] < before + _HELD // 2)


_HELD = 512 << 20


def _memory(nbytes: int) -> int:
    """Return the memory of this process in bytes, while it has Arrow's and Python's values of so many bytes."""
    _of_arrow = [pa.array(np.arange(1 << 13)).cast(pa.float64()) for _ in range(nbytes >> 17)]
    _of_python = [b"x" * (1 << 16) for _ in range(nbytes >> 17)]
    return int(psutil.Process().memory_info().rss)


def test_the_end_of_the_engine_ends_its_processes_and_whoever_waits_for_them(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with LocalEngine(1) as engine:
        errors: list[Any] = []

        def run() -> None:
            with pytest.raises(EngineError, match="has ended") as raised:
                engine.run(_sleep, [str(pid)], 0)
            errors.append(raised.value)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        eventually(lambda: pid.exists() and pid.read_text() != "")
    for thread in threads:
        thread.join(60)
    assert len(errors) == 2
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_value_that_no_temporary_file_takes_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused() -> str:
        with LocalEngine() as engine, pytest.raises(EngineError) as error, engine.share(bytes(1 << 20)):
            pass
        assert error.value.code == "TASKS_FAILED"
        return str(error.value)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        full = refused()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "a temporary file for tasks cannot be written: [Errno 27] File too large" in full
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert "a temporary file for tasks cannot be written: [Errno 2] No such file or directory" in refused()
