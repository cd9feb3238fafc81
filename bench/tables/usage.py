"""Processor time and memory of a process and all that it has started, seen by looking again and again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil  # type: ignore[import-untyped]

_PAUSE = 0.5
"""The seconds between two looks; what a process uses after the last one is not seen."""
_MIB = 1 << 20


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
    """Looks at processes while the context lasts."""

    def __init__(self, pid: int, server: int) -> None:
        """Take the process ids of the command and of the server."""
        self._pids = pid, server
        self._seconds: list[dict[tuple[int, float], float]] = [{}, {}]
        self._start_seconds: list[float] = [0.0, 0.0]
        self._peak: Counter[str] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._start_seconds = [sum(seconds.values()) for seconds in self._seconds]
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    @property
    def used(self) -> Used:
        """Return the use since the context began; a process that began before it counts from then on."""
        own, servers = (sum(seconds.values()) for seconds in self._seconds)
        return Used(own - self._start_seconds[0], servers - self._start_seconds[1], dict(self._peak))

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE):
            self._look(with_memory=True)

    def _look(self, *, with_memory: bool = False) -> None:
        memory: Counter[str] = Counter()
        for seconds, processes in zip(self._seconds, _trees(self._pids), strict=True):
            for process in processes:
                with suppress(psutil.Error), process.oneshot():
                    key = process.pid, process.create_time()
                    seconds[key] = sum(process.cpu_times()[:2])
                    if with_memory and seconds is self._seconds[0]:
                        memory[self._kind(process)] += process.memory_full_info().pss // _MIB
        memory["in all"] = memory.total()
        if memory["in all"] > self._peak["in all"]:
            self._peak = memory

    def _kind(self, process: psutil.Process) -> str:
        if process.pid == self._pids[0]:
            return "driver"
        return "Java" if process.name() == "java" else "workers"


def processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process and of its running descendants."""
    total = 0.0
    for process in _trees([pid])[0]:
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:2])
    return total


def _trees(roots: Sequence[int]) -> list[list[psutil.Process]]:
    """Return the processes that each of some has started, and itself, by one look at all that run."""
    children: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"], []).append(process)
    trees = []
    for root in roots:
        tree, pids = [], [root]
        with suppress(psutil.Error):
            tree.append(psutil.Process(root))
        while pids:
            child_processes = children.get(pids.pop(), [])
            tree += child_processes
            pids += [process.pid for process in child_processes]
        trees.append(tree)
    return trees


__all__ = ["Usage", "Used", "processor_seconds"]
