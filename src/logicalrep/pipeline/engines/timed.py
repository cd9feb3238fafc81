"""The measurement of an engine's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from logicalrep.observe.counts import Stopwatch
from logicalrep.pipeline.engines.engine import Engine, Shared

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class TimedEngine:
    """An engine that delegates to another engine, and measures the time of its calls."""

    def __init__(self, engine: Engine, stopwatch: Stopwatch) -> None:
        self._engine = engine
        self._stopwatch = stopwatch

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        with self._stopwatch.measure():
            return self._engine.run(function, items, nbytes)

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        with self._stopwatch.measure():
            return self._engine.run_together(function, item, nbytes)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        return self._engine.share(value)

    def check(self) -> None:
        self._engine.check()
