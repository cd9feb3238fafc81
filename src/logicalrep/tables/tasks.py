"""Functions run on many items at once: by Spark's executors, or in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import psycopg

from logicalrep_runtime.errors import LogicalRepError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Shared = TypeVar("_Shared", covariant=True)


class Shared(Protocol[_Shared]):
    """A holder of a value."""

    @property
    def value(self) -> _Shared:
        """The value."""
        ...


@dataclass(frozen=True, slots=True)
class Here(Generic[_Result]):
    """A value in the same process."""

    value: _Result


class Tasks(Protocol):
    """A runner of functions."""

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item, in their order; the first error ends all.

        Function, items and results are pickled, and an item may run more than once.
        """
        ...

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value that many items have; it is sent to each machine once, and not with each item."""
        ...


class LocalTasks:
    """A runner that calls the function in this process, one item after another.

    Example:
        >>> LocalTasks().run(len, ["a", "bc"])
        [1, 2]
    """

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item."""
        return [function(item) for item in items]

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of the value itself."""
        return nullcontext(Here(value))


class SparkTasks:
    """A runner on the executors of a Spark session: a task for each item.

    Example:
        >>> SparkTasks(session()).run(len, ["a", "bc"])
        [1, 2]
    """

    def __init__(self, spark: Any) -> None:
        """Take a classic session; Spark Connect has no such tasks."""
        self._context = spark.sparkContext

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item. Raises the first error of ours, or of the server.

        Raises TasksError if Spark could not run a task, after it has tried again.
        """
        if not items:
            return []
        # With the fair scheduler, a load's tasks and those of a batch take turns: each kind of work has its own pool.
        self._context.setLocalProperty("spark.scheduler.pool", function.__module__)
        try:
            results = self._context.parallelize(items, len(items)).map(_Caught(function)).collect()
        except Exception as error:
            raise TasksError(f"Spark could not run a task: {_reason(error)}") from error
        for raised, _ in results:
            if raised is not None:
                raise raised
        return [result for _, result in results]

    @contextmanager
    def share(self, value: _Result) -> Iterator[Shared[_Result]]:
        """Yield a broadcast variable, which goes when the context ends."""
        shared = self._context.broadcast(value)
        try:
            yield shared
        finally:
            with suppress(Exception):  # Java may have ended, which the tasks have told.
                shared.destroy()


class TimedTasks:
    """A runner that passes everything on to another, and counts the time in which that runs."""

    def __init__(self, tasks: Tasks) -> None:
        """Take the other runner."""
        self._tasks = tasks
        self._lock = threading.Lock()
        self.seconds = 0.0
        """The seconds of all calls, which may overlap."""

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item."""
        began = time.monotonic()
        try:
            return self._tasks.run(function, items)
        finally:
            with self._lock:
                self.seconds += time.monotonic() - began

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value."""
        return self._tasks.share(value)


class TasksError(LogicalRepError, RuntimeError):
    """A task that Spark could not run: its Java has ended, or its workers end again and again."""

    code = "TASKS_FAILED"


class _Caught:
    """A function that returns errors: of a raised one only the text would reach the driver, after some more tries."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, item: Any) -> tuple[Exception | None, Any]:
        try:
            return None, self._function(item)
        except (LogicalRepError, psycopg.Error) as error:
            return error, None


def _reason(error: Exception) -> str:
    """Return the last line of a task's own traceback, or else the first line of the error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    ends = [number for number, line in enumerate(lines) if line.lstrip().startswith("at org.apache.spark")]
    line = lines[ends[0] - 1] if ends and ends[0] else lines[0] if lines else type(error).__name__
    return line.strip()


__all__ = ["Here", "LocalTasks", "Shared", "SparkTasks", "Tasks", "TasksError", "TimedTasks"]
