"""The engine of Spark: the items of several threads are few jobs, on whatever kind of session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from logicalrep.pipeline.engines.engine import Shared
from logicalrep.pipeline.engines.outcomes import Outcome, result_of, run_here
from logicalrep.pipeline.engines.spark.jobs import SparkJobs
from logicalrep.pipeline.limits import Limits

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class SparkEngine:
    """An engine on the executors of a Spark session, whose jobs have the items of several threads.

    Example:
        >>> SparkEngine(ClassicJobs(session())).run(len, ["a", "bc"], 3)
        [1, 2]
    """

    def __init__(self, jobs: SparkJobs, limits: Limits = Limits()) -> None:
        """Take what runs the jobs, and the limits of the run."""
        self._limits = limits
        self._spark_jobs = jobs
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
        return [result_of(each) for each in self._spark_jobs.run(function, items, apart=True)]

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item: those that come while jobs run are one job then.

        A job costs some hundredths of a second, whatever it does: with many small tables that is most of the time.

        Raises what `run` does.
        """
        if nbytes > self._limits.sent_bytes:
            with self._in_this_process:
                return run_here(function, item)
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
                outcomes = self._spark_jobs.run(function, [each.item for each in group], apart=False)
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
        is_small = not self._bytes or self._bytes + own.nbytes <= self._limits.sent_at_once_bytes
        return self._jobs < self._limits.jobs and is_small

    def _take(self, own: _WaitingItem) -> list[_WaitingItem]:
        """Return an item and those that go with it, which wait no more; none if it is in another job already."""
        if own not in self._waiting:
            return []
        group, size = [own], own.nbytes
        most_bytes = min(self._limits.job_bytes, self._limits.sent_at_once_bytes - self._bytes)
        for each in self._waiting:
            fits = len(group) < self._limits.job_items and size + each.nbytes <= most_bytes
            if each is not own and each.function is own.function and fits:
                group.append(each)
                size += each.nbytes
        self._waiting = [each for each in self._waiting if each not in group]
        self._changed.notify_all()
        return group

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value, which goes when the context ends."""
        return self._spark_jobs.share(value)

    def check(self) -> None:
        """Raise EngineEndedError if Spark's Java, which this process has started, has ended."""
        self._spark_jobs.check()


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingItem:
    """An item that waits for a job."""

    function: Callable[[Any], object]
    item: Any
    nbytes: int
    outcome: Future[Outcome] = field(default_factory=Future)
