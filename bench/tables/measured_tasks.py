"""An engine that measures the tasks of another one: seconds, processor seconds, and bytes to and from them."""

from __future__ import annotations

import functools
import pickle
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from logicalrep.pipeline.engines.engine import Engine, Shared


class MeasuredFunction:
    """A function whose result has its seconds and processor seconds beside it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        """Take the function."""
        self._function = function
        # Spark's pools, and turns, go by it.
        self.__module__ = function.__module__

    def __call__(self, item: Any) -> tuple[Any, float, float]:
        """Return the result, its seconds, and its processor seconds."""
        began, used = time.monotonic(), time.process_time()
        result = self._function(item)
        return result, time.monotonic() - began, time.process_time() - used


# Items of one function share a job.
measured = functools.lru_cache(maxsize=None)(MeasuredFunction)


@dataclass
class KindOfTasks:
    """The tasks of one function."""

    tasks: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    waited: float = 0.0
    """The seconds that the calls took, which may be at the same time."""
    sent: int = 0
    received: int = 0


@dataclass
class MeasuredEngine:
    """An engine that passes everything on to another, and counts."""

    engine: Engine
    kinds: dict[str, KindOfTasks] = field(default_factory=lambda: defaultdict(KindOfTasks))
    shared: int = 0
    """The bytes of values that each executor gets once."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
        """Return the function's result for each item."""
        began = time.monotonic()
        done = self.engine.run(measured(function), items, nbytes)
        self._count(function, items, done, time.monotonic() - began)
        return [result for result, _, _ in done]

    def run_together(self, function: Callable[[Any], Any], item: Any, nbytes: int) -> Any:
        """Return the function's result for an item."""
        began = time.monotonic()
        done = self.engine.run_together(measured(function), item, nbytes)
        self._count(function, [item], [done], time.monotonic() - began)
        return done[0]

    @contextmanager
    def share(self, value: Any) -> Iterator[Shared[Any]]:
        """Yield a holder of a value."""
        with self._lock:
            self.shared += len(pickle.dumps(value))
        with self.engine.share(value) as shared:
            yield shared

    def check(self) -> None:
        """Raise the error of an engine that has ended."""
        self.engine.check()

    def _count(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        done: Sequence[tuple[Any, float, float]],
        waited: float,
    ) -> None:
        sent = sum(len(pickle.dumps(item)) for item in items)
        received = sum(len(pickle.dumps(result)) for result, _, _ in done)
        with self._lock:
            kind = self.kinds[function.__name__.strip("_")]
            kind.tasks += len(items)
            kind.seconds += sum(seconds for _, seconds, _ in done)
            kind.cpu += sum(cpu for _, _, cpu in done)
            kind.waited += waited
            kind.sent += sent
            kind.received += received


__all__ = ["KindOfTasks", "MeasuredEngine", "MeasuredFunction", "measured"]
