"""The time that an engine takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from logicalrep.observe.counts import Stopwatch
from logicalrep.pipeline.engines.engine import Engine, Shared

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class TimedEngine:
    """An engine that passes everything on to another, and counts the time in which that runs."""

    def __init__(self, engine: Engine, stopwatch: Stopwatch) -> None:
        """Take the other engine, and what counts the time."""
        self._engine = engine
        self._stopwatch = stopwatch

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        """Return the function's result for each item."""
        with self._stopwatch.measure():
            return self._engine.run(function, items, nbytes)

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item."""
        with self._stopwatch.measure():
            return self._engine.run_together(function, item, nbytes)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value."""
        return self._engine.share(value)

    def check(self) -> None:
        """Raise the error of an engine that did not start, or has ended."""
        self._engine.check()
