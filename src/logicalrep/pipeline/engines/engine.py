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
    """A runner of functions; several threads may call it.

    The functions are those of modules, and functions, items and results are pickled. An item may run more than once, as
    its process may end: it writes files of new names alone, which nobody reads before the driver has their names.

    An error of ours or of the server is raised as it was in the function, with its code and notes; one that nobody
    foresaw is a TableFailedError. An item whose process ends, or that has too little memory or disk, is tried again a
    few times, then EngineError is raised. EngineEndedError says that another start of the engine may help.

    The context that starts an engine, as `start_engine` does, ends it, with its processes.
    """

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        """Return the function's result for each item, in their order. Raises the first error.

        Args:
            function: the function.
            items: the items.
            nbytes: about the bytes of data that the function reads or writes for all of them.
        """
        ...

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        """Return the function's result for an item of about this size; other threads' items may go with it.

        An item of more than `Limits.sent_bytes` runs in this process, one after another.
        """
        ...

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of a value that many items have; each process gets it once, and not with each item."""
        ...

    def check(self) -> None:
        """Raise the error of an engine that did not start, or has ended; to be called while there is no work."""
        ...


class SequentialEngine:
    """An engine that calls the function in this process, one item after another.

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
