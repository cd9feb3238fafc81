"""The engine that runs functions on the executors of a Spark session. PySpark is imported late."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from logicalrep.pipeline.engines.engine import MOST_SENT, Engine, EngineEndedError, EngineError, Shared
from logicalrep.pipeline.engines.outcomes import Caught, Outcome, result_of
from logicalrep.pipeline.errors import Ended
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_JOBS = 4
"""The most jobs for items of several threads at the same time."""
_NO_TASK = "Spark could not run a task"
_MOST_TOGETHER, _MOST_BYTES = 32, 64 << 20
"""The most items, and bytes of items, of one of these jobs."""
MOST_AT_ONCE = 128 << 20
"""The most bytes of items of all these jobs: Java, with a heap of 1 GB, has each several times."""
_LOCAL = "local[*,4]"
"""All cores; a task whose worker has ended is tried again."""
_SETTINGS = {
    # A load's tasks must not keep those of a batch waiting.
    "spark.scheduler.mode": "FAIR",
    # Files are read and written by Python; Java only passes tasks on.
    "spark.driver.memory": "1g",
}
_CHECK_AGAIN = 0.1
"""The longest time until the start of Spark sees that it is to end, in seconds."""


def is_spark_there() -> bool:
    """Return whether the program has a session already, or `spark-submit` runs it. PySpark is not imported for it."""
    pyspark = sys.modules.get("pyspark")
    has_context = pyspark is not None and pyspark.SparkContext._active_spark_context is not None
    return has_context or "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def start_spark(storage: Storage, stop: threading.Event) -> Iterator[Engine]:
    """Yield a runner on the active session, on that of `spark-submit`, or on a new local one, which ends with it.

    Raises:
        StateError: the destination is a local folder, and the executors elsewhere would write into folders of their
            own.
        EngineError: Spark does not start.
        EngineEndedError: the Java of the local session has ended; another call starts another one.
        Ended: `stop` was set before Spark had started.
    """
    from pyspark.sql import SparkSession

    from logicalrep.spark.java import forget, quiet_end

    is_ours = False
    try:
        with spark_errors("Spark does not start"):
            spark = SparkSession.getActiveSession()
            if spark is None and is_spark_there():
                spark = SparkSession.builder.getOrCreate()
            if spark is None:
                spark, is_ours = _start_session(stop), True
            master = str(spark.sparkContext.master)
    except EngineEndedError:
        forget()
        raise
    with quiet_end():
        try:
            if storage.is_local and not master.startswith("local"):
                raise StateError(
                    f"{storage.uri} is a folder, which the executors of {master} do not share: name an object store",
                    code="DESTINATION_NOT_SHARED",
                )
            yield SparkEngine(spark)
        except EngineEndedError as error:
            if not is_ours:
                # The session belongs to the program, which has to make another one.
                raise EngineError(error.description) from error
            forget()
            raise
        finally:
            if is_ours:
                with suppress(Exception):  # Java may have ended, which the tasks have told.
                    spark.stop()


def _start_session(stop: threading.Event) -> SparkSession:
    """Return a new local session. Raises Ended as soon as `stop` is set, however long the start takes."""
    from logicalrep.spark.java import launch_apart
    from logicalrep.spark.sessions import start_session

    made: Future[SparkSession] = Future()

    def start() -> None:
        try:
            made.set_result(start_session(_LOCAL, _SETTINGS, launch_apart))
        except BaseException as error:
            made.set_exception(error)

    # PySpark started by the main thread would take over its handling of Ctrl-C.
    threading.Thread(target=start, name="logicalrep-spark", daemon=True).start()
    while not made.done():
        if stop.wait(_CHECK_AGAIN):
            raise Ended
    return made.result()


class SparkEngine:
    """An engine on the executors of a Spark session: a task for each item.

    Example:
        >>> SparkEngine(session()).run(len, ["a", "bc"], 3)
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

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        """Return the function's result for each item. Raises the first error of ours, or of the server.

        Raises EngineError if Spark could not run a task, after it has tried again.
        """
        if not items:
            return []
        return [result_of(each) for each in self.run_job(function, items, len(items))]

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
                outcomes = self.run_job(function, [each.item for each in group], parts)
                for each, outcome in zip(group, outcomes, strict=True):
                    each.outcome.set_result(outcome)
            except BaseException as error:
                for each in group:
                    each.outcome.set_exception(error)
            with self._changed:
                self._jobs -= 1
                self._bytes -= size
                self._changed.notify_all()
        result: _Result = result_of(own.outcome.result())
        return result

    def _has_room(self, own: _WaitingItem) -> bool:
        is_small = not self._bytes or self._bytes + own.nbytes <= MOST_AT_ONCE
        return self._jobs < _JOBS and is_small

    def _take(self, own: _WaitingItem) -> list[_WaitingItem]:
        """Return an item and those that go with it, which wait no more; none if it is in another job already."""
        if own not in self._waiting:
            return []
        group, size = [own], own.nbytes
        for each in self._waiting:
            fits = len(group) < _MOST_TOGETHER and size + each.nbytes <= min(_MOST_BYTES, MOST_AT_ONCE - self._bytes)
            if each is not own and each.function is own.function and fits:
                group.append(each)
                size += each.nbytes
        self._waiting = [each for each in self._waiting if each not in group]
        self._changed.notify_all()
        return group

    def run_job(self, function: Callable[[_Item], object], items: Sequence[_Item], parts: int) -> list[Outcome]:
        with spark_errors(_NO_TASK):
            # With the fair scheduler, a load's tasks and those of a batch take turns: each kind of work has its pool.
            self._context.setLocalProperty("spark.scheduler.pool", function.__module__)
            outcomes: list[Outcome] = self._context.parallelize(items, parts).map(Caught(function)).collect()
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

    def check(self) -> None:
        """Raise EngineEndedError if the Java that this process has started has ended."""
        from logicalrep.spark.java import has_ended

        if has_ended(within=0):
            raise EngineEndedError("Spark is not there any more: its Java has ended")


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingItem:
    """An item that waits for a job."""

    function: Callable[[Any], object]
    item: Any
    nbytes: int
    outcome: Future[Outcome] = field(default_factory=Future)


@contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """Raise EngineError, which says what could not be done, for an error of Spark.

    Raises EngineEndedError if Spark's Java has ended.
    """
    try:
        yield
    except LogicalRepError:
        raise
    except Exception as error:
        from logicalrep.spark.java import has_ended

        if has_ended():
            raise EngineEndedError(f"{what}: its Java has ended") from error
        raise EngineError(f"{what}: {_reason(error)}") from error


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
