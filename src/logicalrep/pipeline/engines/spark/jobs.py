"""The jobs of a Spark session: a function on items, with an outcome for each. PySpark is imported late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from logicalrep.pipeline.engines.engine import EngineError, Shared
from logicalrep.pipeline.engines.outcomes import Caught, Outcome
from logicalrep.pipeline.engines.shared_files import ByFile, parts_of, shared_by_file, shared_file
from logicalrep.pipeline.engines.spark.errors import NO_TASK, refuse_ended, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Value = TypeVar("_Value")

_CHECK_INTERVAL = 1.0
"""The seconds between two looks at whether a session is there."""


class SparkJobs(Protocol):
    """What a kind of session does for the engine; several threads may call it.

    An error of Spark is an EngineError.
    """

    def run(self, function: Callable[[Any], object], items: Sequence[Any], *, apart: bool) -> list[Outcome]:
        """Return the outcome for each item, in their order.

        Args:
            function: a module's function.
            items: the items.
            apart: whether each item has a task of its own where the session can say so; else all cores have some.
        """
        ...

    def share(self, value: _Value) -> AbstractContextManager[Shared[_Value]]:
        """Yield a holder of a value, which goes when the context ends."""
        ...

    def check(self) -> None:
        """Raise EngineError if the session has ended: EngineEndedError if it can be started again."""
        ...


class ClassicJobs:
    """The jobs of a session whose driver is this process.

    Where the executors are on this machine, items, outcomes and shared values pass through files: Java, which would
    have each several times, has alone where they are.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Take the session."""
        self._context = spark.sparkContext
        self._is_here = str(self._context.master).startswith("local")
        self._checked_at = 0.0

    def run(self, function: Callable[[Any], object], items: Sequence[Any], *, apart: bool) -> list[Outcome]:
        """Return the outcome for each item."""
        with spark_errors(NO_TASK):
            # So many tasks that all cores have work, also where one item takes longer.
            tasks = len(items) if apart else min(len(items), 2 * self._context.defaultParallelism)
            # With the fair scheduler, a load's tasks and those of a batch take turns: each kind of work has its pool.
            self._context.setLocalProperty("spark.scheduler.pool", function.__module__)
            if not self._is_here:
                outcomes: list[Outcome] = self._context.parallelize(items, tasks).map(Caught(function)).collect()
                return outcomes
            with shared_file() as (file, path), shared_file() as (_, answers):
                parts = parts_of(items, file, path)
                by_file = ByFile(Caught(function), answers)
                return [part.read() for part in self._context.parallelize(parts, tasks).map(by_file).collect()]

    def share(self, value: _Value) -> AbstractContextManager[Shared[_Value]]:
        """Return the context of a holder of a value: in a file, or a broadcast variable for executors elsewhere."""
        return shared_by_file(value) if self._is_here else self._broadcast(value)

    @contextmanager
    def _broadcast(self, value: _Value) -> Iterator[Shared[_Value]]:
        with spark_errors(NO_TASK):
            shared = self._context.broadcast(value)
        try:
            yield shared
        finally:
            with suppress(Exception):  # Java may have ended, which the tasks have told.
                shared.destroy()

    def check(self) -> None:
        """Raise EngineEndedError if the Java that this process has started has ended.

        Raises EngineError if another's has, or if the session is stopped: `spark-submit` that is ended leaves its
        driver's Python behind.
        """
        refuse_ended()
        if time.monotonic() - self._checked_at >= _CHECK_INTERVAL:
            with spark_errors("Spark is not there any more"):
                if self._context._jsc.sc().isStopped():
                    raise EngineError("Spark is not there any more: its session is stopped")
            self._checked_at = time.monotonic()
