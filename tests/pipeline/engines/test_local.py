"""The engine in processes of this machine: its processes, their memory, and what runs in this process."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from logicalrep.pipeline.engines.engine import EngineError, Shared
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.outcomes import TableFailedError
from logicalrep.pipeline.limits import Limits
from tests.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two() -> Iterator[LocalEngine]:
    """Yield an engine of two processes, which start once: they import for a second."""
    with LocalEngine(2) as engine:
        yield engine


def _work(number: int) -> int:
    return 100 // number


@dataclass(frozen=True)
class _Part:
    shared: Shared[list[str]]
    number: int


def _of_shared(part: _Part) -> str:
    return part.shared.value[part.number]


@pytest.mark.skipif(sys.platform != "linux", reason="Other systems have no way to open a file without a name again.")
def test_nothing_of_a_shared_value_stays_after_a_kill(
    two: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with two.share(list("abcdef")) as shared:
        assert two.run(_of_shared, [_Part(shared, 3)], 0) == ["d"]
        assert list(tmp_path.iterdir()) == []


def _end(path: str) -> str:
    """End the process at the first three calls with a file, and return its contents at the fourth."""
    with Path(path).open("a") as file:
        file.write("x")
    if len(Path(path).read_text()) < 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return Path(path).read_text()


def test_an_item_whose_process_ends_is_tried_again_a_few_times(two: LocalEngine, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(two.run_together, _work, 10, 1) for _ in range(20)]
        assert two.run(_end, [str(tmp_path / "ended")], 0) == ["xxxx"]
        assert {future.result() for future in futures} == {10}
    with pytest.raises(EngineError, match=r"\[TASKS_FAILED\] .* 4 times: it ended with exit code 3"):
        two.run(os._exit, [3], 0)
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
        for future in [pool.submit(two.run_together, _alone, str(tmp_path / "one"), 600) for _ in range(8)]:
            future.result()


@pytest.mark.skipif(sys.platform != "linux", reason="a process reads its memory in /proc")
def test_a_process_keeps_no_memory_of_items_that_are_done() -> None:
    with LocalEngine(1) as engine:
        (idle,) = engine.run(_memory, [0], 0)
        (while_held,) = engine.run(_memory, [_HELD], 0)
        assert while_held > idle + _HELD
        eventually(lambda: engine.run(_memory, [0], 0)[0] < idle + _HELD // 2)


_HELD = 512 << 20


def _memory(nbytes: int) -> int:
    """Return the memory of this process in bytes, while it has Arrow's and Python's values of so many bytes."""
    _of_arrow = [pa.array(np.arange(1 << 13)).cast(pa.float64()) for _ in range(nbytes >> 17)]
    _of_python = [b"x" * (1 << 16) for _ in range(nbytes >> 17)]
    return int(psutil.Process().memory_info().rss)


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
