"""The engine of processes on this machine, without Spark and Java."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self, TypeVar

from logicalrep.pipeline.engines.engine import HAS_ENDED, TRIES, EngineError, Shared
from logicalrep.pipeline.engines.memory import release_memory
from logicalrep.pipeline.engines.outcomes import Caught, Outcome, pickled, result_of, run_in_process
from logicalrep.pipeline.engines.own_process import leave_out_pandas
from logicalrep.pipeline.engines.shared_files import shared_by_file
from logicalrep.pipeline.limits import Limits
from logicalrep_runtime.errors import LogicalRepError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Signals go to all processes of a group or service: only this process handles them, and ends the workers.
_PROGRAM = """trap '' HUP INT TERM; exec "$@" """
_WORKER = "import sys; sys.path[:] = sys.argv[2:]; from logicalrep.pipeline.engines.local import serve; serve()"
_ENDING = 2.0
"""The most seconds between the break of a worker's connection and the worker's exit."""


class LocalEngine:
    """An engine with one process for each usable core; each starts when it is needed.

    A process that ends is replaced, and its item is retried.

    Example:
        >>> with LocalEngine() as engine:
        ...     engine.run(len, ["a", "bc"], 3)
        [1, 2]
    """

    def __init__(self, processes: int | None = None, limits: Limits = Limits()) -> None:
        """Take the limits of the run; start nothing yet."""
        self._limits = limits
        self._processes = processes or _usable_cores()
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._waiting: list[_Turn] = []
        self._running: Counter[str] = Counter()
        self._bytes = 0
        self._has_ended = False
        self._changed = threading.Condition()
        self._threads = ThreadPoolExecutor(self._processes, thread_name_prefix="logicalrep-engine")
        # Large rows one after another: they are in the memory of this process.
        self._in_this_process = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
            for worker in self._workers:
                worker.kill()
            for worker in self._idle:
                worker.end()
        self._threads.shutdown(cancel_futures=True)

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        if len(items) == 1:
            return [self._run(function, items[0], 0)]
        try:
            return list(self._threads.map(lambda item: self._run(function, item, 0), items))
        except (CancelledError, RuntimeError) as error:
            if self._has_ended and not isinstance(error, LogicalRepError):
                # No thread has begun the items.
                raise EngineError(HAS_ENDED) from None
            raise

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        if nbytes > self._limits.sent_bytes:
            with self._in_this_process:
                return run_in_process(function, item)
        return self._run(function, item, nbytes)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        return shared_by_file(value)

    def check(self) -> None:
        if self._has_ended:
            raise EngineError(HAS_ENDED)

    def _run(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        with self._take_turn(_Turn(function.__module__, nbytes)):
            data, reason = pickle.dumps((Caught(function), item)), ""
            for _ in range(TRIES):
                with self._worker() as worker:
                    answer = worker.ask(data)
                if not isinstance(answer, str):
                    result: _Result = result_of(answer)
                    return result
                reason = answer
            raise EngineError(f"a process could not run a task, {TRIES} times: {reason}")

    @contextmanager
    def _take_turn(self, own: _Turn) -> Iterator[None]:
        """Wait for the turn: the kind of work with the fewest running items is next, so loads and batches alternate."""

        def is_next() -> bool:
            has_room = self._running.total() < self._processes
            has_memory = not self._bytes or self._bytes + own.nbytes <= self._limits.sent_at_once_bytes
            is_first = min(self._waiting, key=lambda turn: self._running[turn.kind]) is own
            return self._has_ended or (has_room and has_memory and is_first)

        with self._changed:
            self._waiting.append(own)
            try:
                self._changed.wait_for(is_next)
            finally:
                self._waiting.remove(own)
            self._count(own, 1)
        try:
            yield
        finally:
            with self._changed:
                self._count(own, -1)

    def _count(self, own: _Turn, change: int) -> None:
        self._running[own.kind] += change
        self._bytes += change * own.nbytes
        self._changed.notify_all()

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        with self._changed:
            if self._has_ended:
                raise EngineError(HAS_ENDED)
            worker = self._idle.pop() if self._idle else _Worker()
            self._workers.add(worker)
        try:
            yield worker
        except BaseException:
            # The answer may still arrive, and would be taken for the next item's answer.
            worker.end()
            raise
        finally:
            with self._changed:
                if self._has_ended:
                    worker.end()
                (self._workers.discard if worker.has_ended else self._idle.append)(worker)


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    kind: str
    nbytes: int


class _Worker:
    """A worker process, which ends whenever this process ends."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    *("/bin/sh", "-c", _PROGRAM, "sh", sys.executable, "-P", "-c", _WORKER),
                    *(str(theirs.fileno()), *sys.path),
                ],
                # The end of this pipe tells the worker that this process has ended.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Each worker has one core.
                env={"OMP_NUM_THREADS": "1", **os.environ},
            )
        self._connection = Connection(ours.detach())
        self.has_ended = False

    def ask(self, data: bytes) -> Outcome | str:
        """Send a function with its item. Return the outcome, or the reason for none: another try may succeed."""
        try:
            self._connection.send_bytes(data)
            answer = self._connection.recv_bytes()
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                # The connection breaks before the process has exited.
                self._process.wait(_ENDING)
            return f"it ended {self.end()}"
        outcome: Outcome | str = pickle.loads(answer)
        return outcome

    def kill(self) -> None:
        """Kill the process: the thread that waits for its answer gets EOFError."""
        self._process.kill()

    def end(self) -> str:
        """Kill the process if it still runs. Return how it ended, in words."""
        self.has_ended = True
        self.kill()
        self._connection.close()
        # This waits for the process.
        self._process.communicate()
        code = self._process.returncode
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def serve() -> None:
    """Serve the parent process: answer each item with its outcome."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    leave_out_pandas()
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, ConnectionError):
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))
            release_memory()


def _answer(data: bytes) -> bytes:
    try:
        function, item = pickle.loads(data)
        answer = pickled(function(item))
    except Exception as error:
        answer = pickle.dumps(f"{type(error).__name__}: {error}")
    return answer


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


def _usable_cores() -> int:
    """Return the number of cores that this process may use; a container may have fewer than the machine."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("utf-8").split()
        cores = min(cores, -(-int(quota) // int(period)))
    return max(cores, 1)
