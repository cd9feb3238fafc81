"""The interface of engines, which run a function on many items in parallel."""

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
"""The number of tries of an item that lacks memory or disk space."""


class Shared(Protocol[_Shared]):
    """A holder of a value."""

    @property
    def value(self) -> _Shared:
        """The value."""
        ...


@dataclass(frozen=True, slots=True)
class LocalValue(Generic[_Result]):
    """A value in the same process."""

    value: _Result


class Engine(Protocol):
    """Runs functions on items, in processes of this machine or of other machines.

    `tests/pipeline/engines/test_every_engine.py` checks every implementation against these rules.

    **Threads.** Any thread calls any method, many at the same time: for batches, loads, catching up and merges. Each
    thread waits for its own items alone.

    **Functions.** A function is defined in a module; functions, items and results are pickled. A function gets data of
    the calling process through its item alone, and changes nothing in that process.

    **Repeated runs.** An item may run more than once, even at the same time: its process may end, or the engine may
    abandon it while it still runs. So a function writes files with new names only, and nobody reads them before the
    function's result names them. Upkeep deletes the files of other tries.

    **Durability.** The files that a function writes with `Storage` are durable and visible to every process before
    `run` or `run_together` returns. No file is part of a table before a commit names it.

    **Errors.** `run` and `run_together` raise the first error in the order of the items; other items may still run:

    - the error itself, with its code and notes, if the function raised a LogicalRepError or psycopg.Error;
    - TableFailedError for every other error, with the traceback as a note;
    - EngineError if the item's process ended, or the function raised OSError or MemoryError, TRIES times, or as often
      as the Spark session's settings say;
    - EngineEndedError if the engine has ended as a whole, so that starting another one may help.

    An item that fails or cannot run fails no other thread's item.

    **End.** The context that starts an engine, such as `start_engine`, ends the engine and its processes. Threads that
    wait for items then get an EngineError.
    """

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        """Return the function's result for each item, in the order of the items.

        Called for the files of a load, of a merge, or of a change of columns.

        Args:
            function: the function.
            items: the items.
            nbytes: the approximate bytes that the function reads or writes for all items.
        """
        ...

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item of about `nbytes` bytes; other threads' items may share its job.

        Called for the batches of many tables at the same time. Items of more than `Limits.sent_bytes` run in this
        process, one after another.
        """
        ...

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value for many items; each process receives the value once instead of with every item.

        Only items that run within the context may have the holder. The value never changes.
        """
        ...

    def check(self) -> None:
        """Raise the error of an engine that did not start, or has ended; the loop calls it while there is no work."""
        ...


class SequentialEngine:
    """An engine that calls the function in this process, one item after another, and raises the original errors.

    It runs items that are too large to send to other processes, and replaces other engines in tests.

    Example:
        >>> SequentialEngine().run(len, ["a", "bc"], 3)
        [1, 2]
    """

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        return [function(item) for item in items]

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        return function(item)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        return nullcontext(LocalValue(value))

    def check(self) -> None:
        """Do nothing: there is nothing to start."""


class EngineError(LogicalRepError, RuntimeError):
    """A task that the engine could not run after several tries."""

    code = "TASKS_FAILED"


class EngineEndedError(EngineError):
    """A task that could not run because the engine has ended; another engine can be started."""

    code = "JAVA_ENDED"
