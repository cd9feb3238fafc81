"""The engine of Spark, which runs the items of several threads in few jobs, on any kind of session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from logicalrep.pipeline.engines.engine import EngineEndedError, Shared
from logicalrep.pipeline.engines.outcomes import Outcome, result_of, run_in_process
from logicalrep.pipeline.engines.spark.jobs import SparkJobs
from logicalrep.pipeline.limits import Limits

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class SparkEngine:
    """An engine on the executors of a Spark session.

    Example:
        >>> SparkEngine(ClassicJobs(session())).run(len, ["a", "bc"], 3)
        [1, 2]
    """

    def __init__(self, jobs: SparkJobs, limits: Limits = Limits()) -> None:
        self._limits = limits
        self._spark_jobs = jobs
        self._waiting: list[_WaitingItem] = []
        self._jobs = self._bytes = 0
        self._changed = threading.Condition()
        # Large rows one after another: they are in the memory of this process.
        self._in_this_process = threading.Lock()

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        if not items:
            return []
        return [result_of(outcome) for outcome in self._spark_jobs.run(function, items, apart=True)]

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item. Items that arrive while jobs run share the next job.

        A job costs some hundredths of a second, whatever it does: with many small tables that is most of the time.
        """
        if nbytes > self._limits.sent_bytes:
            with self._in_this_process:
                return run_in_process(function, item)
        outcome = self._run_in_job(_WaitingItem(function, item, nbytes))
        if outcome is None:
            # Another thread's item may have failed the job.
            outcome = self._run_in_job(_WaitingItem(function, item, nbytes, is_alone=True))
        assert outcome is not None
        result: _Result = result_of(outcome)
        return result

    def _run_in_job(self, own: _WaitingItem) -> Outcome | None:
        """Return the item's outcome; None if a job of several items failed. Raises the error of a job of this item."""
        with self._changed:
            self._waiting.append(own)
            self._changed.wait_for(lambda: own not in self._waiting or self._has_room(own))
            group = self._take_group(own)
            nbytes = sum(waiting.nbytes for waiting in group)
            self._jobs += bool(group)
            self._bytes += nbytes
        if group:
            outcomes: Sequence[Outcome | None] = [None] * len(group)
            try:
                outcomes = self._spark_jobs.run(own.function, [waiting.item for waiting in group], apart=False)
            except EngineEndedError as error:
                outcomes = [(error, None)] * len(group)
            except Exception:
                if len(group) == 1:
                    raise
            finally:
                for waiting, outcome in zip(group, outcomes, strict=True):
                    waiting.outcome.set_result(outcome)
                with self._changed:
                    self._jobs -= 1
                    self._bytes -= nbytes
                    self._changed.notify_all()
        return own.outcome.result()

    def _has_room(self, own: _WaitingItem) -> bool:
        is_small = not self._bytes or self._bytes + own.nbytes <= self._limits.sent_at_once_bytes
        return self._jobs < self._limits.jobs and is_small

    def _take_group(self, own: _WaitingItem) -> list[_WaitingItem]:
        """Remove an item and the items that share its job from the waiting ones; empty if another thread took it."""
        if own not in self._waiting:
            return []
        group, nbytes = [own], own.nbytes
        max_bytes = min(self._limits.job_bytes, self._limits.sent_at_once_bytes - self._bytes)
        for waiting in self._waiting:
            fits = len(group) < self._limits.job_items and nbytes + waiting.nbytes <= max_bytes
            if waiting is not own and waiting.can_join(own) and fits:
                group.append(waiting)
                nbytes += waiting.nbytes
        self._waiting = [waiting for waiting in self._waiting if waiting not in group]
        self._changed.notify_all()
        return group

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        return self._spark_jobs.share(value)

    def check(self) -> None:
        self._spark_jobs.check()


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingItem:
    function: Callable[[Any], object]
    item: Any
    nbytes: int
    is_alone: bool = False
    """Whether its job has no other item."""
    outcome: Future[Outcome | None] = field(default_factory=Future)

    def can_join(self, other: _WaitingItem) -> bool:
        return self.function is other.function and not self.is_alone and not other.is_alone
