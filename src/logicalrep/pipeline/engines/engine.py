"""The interface of engines: they run functions on many items at once, wherever that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from logicalrep_runtime.errors import LogicalRepError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Shared = TypeVar("_Shared", covariant=True)

HAS_ENDED = "the engine has ended"
TRIES = 4
"""The number of times that an item is tried that has too little memory or disk."""


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


class Engine(Protocol):
    """A runner of functions on items, in processes of this machine or of others.

    `tests/pipeline/engines/test_every_engine.py` holds each engine to what follows.

    **Threads.** Any thread calls any method, many at the same time: for batches, loads, catching up and merges. Each
    thread waits for its own items alone.

    **Functions.** A function stands in a module; functions, items and results are pickled. A function knows the process
    that calls the engine by its item alone, and changes nothing in that process.

    **Twice.** An item may run more than once, also at the same time, as its process may end, or may be given up while
    it still runs. So a function writes files of new names alone, which nobody reads before its result has their names:
    the files of another try are never read, and upkeep deletes them.

    **Durable.** The files that a function has written by `Storage` are durable, and every process sees them, before
    `run` or `run_together` returns its result. Nothing that a function wrote is in a table before a commit names it.

    **Errors.** The methods that run items raise the first error in the order of the items; other items may have run, or
    may still run:

    - the error itself, with its code and notes, if the function raised a LogicalRepError or psycopg.Error;
    - TableFailedError for every other error, with its traceback as a note;
    - EngineError for an item whose process ended, or that raised OSError or MemoryError, TRIES times, or as often as
      a session of Spark says;
    - EngineEndedError if the engine has ended as a whole, so that another start may help.

    What a function raises for one item is never raised for another thread's item.

    **End.** The context that starts an engine, as `start_engine` does, ends the engine with its processes. Threads that
    wait for items then get an EngineError.
    """

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        """Return the function's result for each item, in their order.

        Called for the files of a load, of a merge, or of a change of columns.

        Args:
            function: the function.
            items: the items.
            nbytes: about the bytes of data that the function reads or writes for all of them.
        """
        ...

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item of about this size; other threads' items may go with it.

        Called for the batches of many tables at the same time. Items of more than `Limits.sent_bytes` run in this
        process, one after another.
        """
        ...

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value that many items have; each process gets it once, and not with each item.

        Within the context alone, items have the holder. The value never changes.
        """
        ...

    def check(self) -> None:
        """Raise the error of an engine that did not start, or has ended; called by the loop while there is no work."""
        ...


class SequentialEngine:
    """An engine that calls the function in this process, one item after another, and raises its errors as they are.

    It runs what is too large to be sent to other processes, and stands for an engine in tests.

    Example:
        >>> SequentialEngine().run(len, ["a", "bc"], 3)
        [1, 2]
    """

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        """Return the function's result for each item."""
        return [function(item) for item in items]

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item."""
        return function(item)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of the value itself."""
        return nullcontext(Here(value))

    def check(self) -> None:
        """Do nothing: there is nothing to start."""


class EngineError(LogicalRepError, RuntimeError):
    """A task that the engine could not run, as its processes end again and again."""

    code = "TASKS_FAILED"


class EngineEndedError(EngineError):
    """A task that could not run because the engine has ended as a whole; it can be started again."""

    code = "JAVA_ENDED"
