"""The jobs of a Spark session: a function on items, with an outcome for each item. PySpark is imported late."""

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
"""The seconds between two checks whether the session is stopped."""


class SparkJobs(Protocol):
    """The jobs of one kind of session; several threads may call them. An error of Spark is an EngineError."""

    def run(self, function: Callable[[Any], object], items: Sequence[Any], *, apart: bool) -> list[Outcome]:
        """Return the outcome for each item, in the order of the items.

        Args:
            function: a module's function.
            items: the items.
            apart: whether each item gets its own task, if the session supports it; else all cores get items.
        """
        ...

    def share(self, value: _Value) -> AbstractContextManager[Shared[_Value]]:
        """Yield a holder of a value, which is deleted when the context ends."""
        ...

    def check(self) -> None:
        """Raise EngineError if the session has ended: EngineEndedError if another one can be started."""
        ...


class ClassicJobs:
    """The jobs of a session whose driver is this process.

    With executors on this machine, items, outcomes and shared values pass through files: Java gets only their
    locations, and would otherwise hold each several times.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._is_on_this_machine = str(self._context.master).startswith("local")
        self._checked_at = 0.0

    def run(self, function: Callable[[Any], object], items: Sequence[Any], *, apart: bool) -> list[Outcome]:
        with spark_errors(NO_TASK):
            # Enough tasks to keep all cores busy even if one item takes longer.
            tasks = len(items) if apart else min(len(items), 2 * self._context.defaultParallelism)
            # Each kind of work has its pool: with the fair scheduler, tasks of loads and of batches take turns.
            self._context.setLocalProperty("spark.scheduler.pool", function.__module__)
            if not self._is_on_this_machine:
                outcomes: list[Outcome] = self._context.parallelize(items, tasks).map(Caught(function)).collect()
                return outcomes
            with shared_file() as (file, path), shared_file() as (_, answers):
                parts = parts_of(items, file, path)
                by_file = ByFile(Caught(function), answers)
                return [part.read() for part in self._context.parallelize(parts, tasks).map(by_file).collect()]

    def share(self, value: _Value) -> AbstractContextManager[Shared[_Value]]:
        """Share a value in a file, or in a broadcast variable for executors on other machines."""
        return shared_by_file(value) if self._is_on_this_machine else self._broadcast(value)

    @contextmanager
    def _broadcast(self, value: _Value) -> Iterator[Shared[_Value]]:
        with spark_errors(NO_TASK):
            shared = self._context.broadcast(value)
        try:
            yield shared
        finally:
            with suppress(Exception):  # Java may have ended, which the tasks report.
                shared.destroy()

    def check(self) -> None:
        """Raise EngineEndedError if the Java that this process has started has ended.

        Raises EngineError if another process's Java has ended, or if the session is stopped: an ended `spark-submit`
        leaves its driver's Python running.
        """
        refuse_ended()
        if time.monotonic() - self._checked_at >= _CHECK_INTERVAL:
            with spark_errors("Spark is no longer available"):
                if self._context._jsc.sc().isStopped():
                    raise EngineError("Spark is no longer available: its session is stopped")
            self._checked_at = time.monotonic()
