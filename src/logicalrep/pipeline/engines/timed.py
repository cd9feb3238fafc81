"""The time that an engine takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from logicalrep.pipeline.engines.engine import Engine, Shared

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class TimedEngine:
    """An engine that passes everything on to another, and counts the time in which that runs."""

    def __init__(self, engine: Engine) -> None:
        """Take the other engine."""
        self._engine = engine
        self._lock = threading.Lock()
        self.seconds = 0.0
        """The seconds of all calls, which may overlap."""

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item."""
        with self._measure_time():
            return self._engine.run(function, items)

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item."""
        with self._measure_time():
            return self._engine.run_together(function, item, nbytes)

    @contextmanager
    def _measure_time(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self.seconds += time.monotonic() - began

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value."""
        return self._engine.share(value)
