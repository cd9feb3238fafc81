"""Functions run on many items at once: by Spark's executors, or in this process."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import psycopg

from logicalrep_runtime.errors import LogicalRepError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Shared = TypeVar("_Shared", covariant=True)

_JOBS = 4
"""The most jobs for items of several threads at the same time."""
_NO_TASK = "Spark could not run a task"
_MOST_TOGETHER, _MOST_BYTES = 32, 64 << 20
"""The most items, and bytes of items, of one of these jobs."""
_MOST_AT_ONCE = 128 << 20
"""The most bytes of items of all these jobs: Java, with a heap of 1 GB, has each several times."""
MOST_SENT = 96 << 20
"""The most bytes of an item that is sent: a row may have a gigabyte, and Spark sends at most 128 MiB at once."""


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

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item of about this size; other threads' items may go with it."""
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

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item."""
        return function(item)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of the value itself."""
        return nullcontext(Here(value))


class SparkTasks:
    """A runner on the executors of a Spark session: a task for each item.

    Example:
        >>> SparkTasks(session()).run(len, ["a", "bc"])
        [1, 2]
    """

    def __init__(self, spark: SparkSession) -> None:
        """Take a classic session; Spark Connect has no such tasks."""
        self._context = spark.sparkContext
        self._waiting: list[_WaitingItem] = []
        self._jobs = self._bytes = 0
        self._changed = threading.Condition()
        # Large rows one after another, as this process has their memory.
        self._in_this_process = threading.Lock()

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item. Raises the first error of ours, or of the server.

        Raises TasksError if Spark could not run a task, after it has tried again.
        """
        if not items:
            return []
        return [_result(each) for each in self._job(function, items, len(items))]

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item: those that come while jobs run are one job then.

        A job costs some hundredths of a second, whatever it does: with many small tables that is most of the time.

        Raises what `run` does.
        """
        if nbytes > MOST_SENT:
            with self._in_this_process:
                return function(item)
        own = _WaitingItem(function, item, nbytes)
        with self._changed:
            self._waiting.append(own)
            self._changed.wait_for(lambda: own not in self._waiting or self._has_room(own))
            group = self._take(own)
            size = sum(each.nbytes for each in group)
            self._jobs += bool(group)
            self._bytes += size
        if group:
            try:
                with spark_errors(_NO_TASK):
                    # So many parts that all cores have work, also where one item takes longer.
                    parts = min(len(group), 2 * self._context.defaultParallelism)
                outcomes = self._job(function, [each.item for each in group], parts)
                for each, outcome in zip(group, outcomes, strict=True):
                    each.outcome.set_result(outcome)
            except BaseException as error:
                for each in group:
                    each.outcome.set_exception(error)
            with self._changed:
                self._jobs -= 1
                self._bytes -= size
                self._changed.notify_all()
        result: _Result = _result(own.outcome.result())
        return result

    def _has_room(self, own: _WaitingItem) -> bool:
        is_small = not self._bytes or self._bytes + own.nbytes <= _MOST_AT_ONCE
        return self._jobs < _JOBS and is_small

    def _take(self, own: _WaitingItem) -> list[_WaitingItem]:
        """Return an item and those that go with it, which wait no more; none if it is in another job already."""
        if own not in self._waiting:
            return []
        group, size = [own], own.nbytes
        for each in self._waiting:
            fits = len(group) < _MOST_TOGETHER and size + each.nbytes <= min(_MOST_BYTES, _MOST_AT_ONCE - self._bytes)
            if each is not own and each.function is own.function and fits:
                group.append(each)
                size += each.nbytes
        self._waiting = [each for each in self._waiting if each not in group]
        self._changed.notify_all()
        return group

    def _job(self, function: Callable[[_Item], object], items: Sequence[_Item], parts: int) -> list[_Outcome]:
        with spark_errors(_NO_TASK):
            # With the fair scheduler, a load's tasks and those of a batch take turns: each kind of work has its pool.
            self._context.setLocalProperty("spark.scheduler.pool", function.__module__)
            outcomes: list[_Outcome] = self._context.parallelize(items, parts).map(_Caught(function)).collect()
        return outcomes

    @contextmanager
    def share(self, value: _Result) -> Iterator[Shared[_Result]]:
        """Yield a broadcast variable, which goes when the context ends."""
        with spark_errors(_NO_TASK):
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
        with self._measure_time():
            return self._tasks.run(function, items)

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item."""
        with self._measure_time():
            return self._tasks.run_together(function, item, nbytes)

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
        return self._tasks.share(value)


_Outcome = tuple[Exception | None, Any]
"""An error, or a result."""


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingItem:
    """An item that waits for a job."""

    function: Callable[[Any], object]
    item: Any
    nbytes: int
    outcome: Future[_Outcome] = field(default_factory=Future)


class TasksError(LogicalRepError, RuntimeError):
    """A task that Spark could not run: its Java has ended, or its workers end again and again."""

    code = "TASKS_FAILED"


class JavaEndedError(TasksError):
    """A task that Spark could not run because its Java, which this process had started, has ended."""

    code = "JAVA_ENDED"


class TableFailedError(LogicalRepError, RuntimeError):
    """An error of the work on one table that nobody foresaw, or of the server."""

    code = "TABLE_FAILED"

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return an unforeseen error in words; a note has its traceback."""
        made = cls(f"an error that was not foreseen, {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        made.add_note("".join(traceback.format_exception(error)))
        return made


@contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """Raise TasksError, which says what could not be done, for an error of Spark.

    Raises JavaEndedError if Spark's Java has ended.
    """
    try:
        yield
    except LogicalRepError:
        raise
    except Exception as error:
        from logicalrep.spark.java import has_ended

        if has_ended():
            raise JavaEndedError(f"{what}: its Java has ended") from error
        raise TasksError(f"{what}: {_reason(error)}") from error


class _Caught:
    """A function that returns errors: of a raised one only the text would reach the driver, after some more tries."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def __call__(self, item: object) -> _Outcome:
        try:
            return None, self._function(item)
        except (LogicalRepError, psycopg.Error) as error:
            return error, None
        except (OSError, MemoryError):
            # Another machine may have room, or a file that this one lacks.
            raise
        except Exception as error:
            return TableFailedError.of(error), None


def _result(outcome: _Outcome) -> Any:
    raised, result = outcome
    if raised is not None:
        raise raised
    return result


def _reason(error: Exception) -> str:
    """Return the last line of a task's own traceback, behind which Java's may follow, or else the first line."""
    # PySpark's connection to Java is that of py4j.
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return "its Java has ended"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = list(takewhile(lambda line: not line.startswith("at org.apache.spark"), lines))
    if not own:
        return type(error).__name__
    return own[-1] if len(own) < len(lines) or any(line.startswith("Traceback") for line in own) else own[0]
