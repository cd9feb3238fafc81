"""Processor time and memory of a process and all that it has started.

Processor seconds are exact: the system counts the seconds of ended processes with the process that waited for them.
Memory is the sum of several processes, for which the system keeps no maximum: `Usage` looks again and again.
"""

from __future__ import annotations

import ctypes
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil  # type: ignore[import-untyped]

_LEAST_PAUSE, _PAUSE_BY_LOOK = 0.05, 20
"""The seconds between two looks at the memory, and the same as a multiple of the seconds of a look."""
_ENDING = 20.0
"""The most seconds between the end of a process and the end of the processes that it started."""
_MIB = 1 << 20
_SET_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux: processes whose parents have ended become children of this process."""


@dataclass(frozen=True)
class Used:
    """The processor time and memory that were used."""

    seconds: float
    """Processor seconds of the process and of those that it started."""
    server_seconds: float
    """Processor seconds of the server."""
    peak: dict[str, int]
    """The MiB at the moment at which they were most: in all, of Java, of the driver, and of Spark's workers."""

    def figures(self, count: int, unit: str) -> dict[str, float | dict[str, int]]:
        """Return them for a number of rows or changes, as a part of a figure."""
        return {
            f"CPU-seconds a million {unit}": round(self.seconds / count * 1e6, 1),
            f"the server's CPU-seconds a million {unit}": round(self.server_seconds / count * 1e6, 1),
            "most memory, MiB": self.peak,
        }


class Usage:
    """Measures processes while the context lasts.

    The command is a child of this process. If this process waits for its end in the context, it waits for no other
    child meanwhile.
    """

    def __init__(self, pid: int, server: int) -> None:
        """Take the process ids of the command and of the server."""
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._pid, self._server = pid, server
        self._own_children = {child.pid for child in psutil.Process().children()}
        self._start_seconds = processor_seconds(pid), processor_seconds(server), _seconds_of_ended()
        self._used = Used(0.0, 0.0, {})
        self._peak: Counter[str] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        command, server, ended = self._start_seconds
        server_seconds = processor_seconds(self._server) - server
        if psutil.pid_exists(self._pid):
            seconds = processor_seconds(self._pid) - command
        else:
            self._wait_for_orphans()
            seconds = _seconds_of_ended() - ended
        self._used = Used(seconds, server_seconds, dict(self._peak))

    @property
    def used(self) -> Used:
        """Return the use since the context began, after it has ended; a process that began before counts from then."""
        return self._used

    def _wait_for_orphans(self) -> None:
        orphans = [child for child in psutil.Process().children() if child.pid not in self._own_children]
        psutil.wait_procs(orphans, _ENDING)

    def _run(self) -> None:
        pause = _LEAST_PAUSE
        while not self._ended.wait(pause):
            began = time.monotonic()
            self._look()
            pause = max(_LEAST_PAUSE, _PAUSE_BY_LOOK * (time.monotonic() - began))

    def _look(self) -> None:
        memory: Counter[str] = Counter()
        for process in _tree(self._pid):
            with suppress(psutil.Error), process.oneshot():
                memory[self._kind(process)] += process.memory_full_info().pss // _MIB
        memory["in all"] = memory.total()
        if memory["in all"] > self._peak["in all"]:
            self._peak = memory

    def _kind(self, process: psutil.Process) -> str:
        if process.pid == self._pid:
            return "driver"
        return "Java" if process.name() == "java" else "workers"


def processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process and of its descendants, including ended ones."""
    total = 0.0
    for process in _tree(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _seconds_of_ended() -> float:
    """Return the processor seconds of the ended children of this process, and of their descendants."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(root: int) -> Iterator[psutil.Process]:
    """Yield a process and its running descendants."""
    with suppress(psutil.Error):
        process = psutil.Process(root)
        yield process
        yield from process.children(recursive=True)


__all__ = ["Usage", "Used", "processor_seconds"]
