"""The outcome of a function in another process: its result, or the error that it raised."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any, Self, TypeVar

import psycopg

from logicalrep.pipeline.engines.engine import TRIES, EngineError
from logicalrep_runtime.errors import LogicalRepError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Outcome = tuple[Exception | None, Any]
"""An error, or a result."""


class TableFailedError(LogicalRepError, RuntimeError):
    """An error of the work on one table that nobody foresaw, or of the server."""

    code = "TABLE_FAILED"

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return an unforeseen error in words; a note has its traceback."""
        table_error = cls(f"an error that was not foreseen, {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        table_error.add_note("".join(traceback.format_exception(error)))
        return table_error


class Caught:
    """A function that returns errors: of a raised one Spark would pass on the text alone, after some more tries."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        """Take the function."""
        self._function = function

    def __call__(self, item: object) -> Outcome:
        """Return the outcome for an item. Raises OSError and MemoryError: another try may have room."""
        try:
            return None, self._function(item)
        except (LogicalRepError, psycopg.Error) as error:
            return error, None
        except (OSError, MemoryError):
            # Another machine may have room, or a file that this one lacks.
            raise
        except Exception as error:
            return TableFailedError.of(error), None


def pickled(outcome: Outcome) -> bytes:
    """Return an outcome for another process; an error that cannot be passed on in words."""
    try:
        data = pickle.dumps(outcome)
        if outcome[0] is not None:
            # An error of another library may refuse to be made again.
            pickle.loads(data)
    except Exception as error:
        data = pickle.dumps((TableFailedError.of(outcome[0] or error), None))
    return data


def result_of(outcome: Outcome) -> Any:
    """Return the result. Raises the error."""
    raised, result = outcome
    if raised is not None:
        raise raised
    return result


def run_here(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    """Return the function's result, as an engine that runs it in this process. Raises what every engine does."""
    for _ in range(TRIES):
        try:
            result: _Result = result_of(Caught(function)(item))
            return result
        except (OSError, MemoryError) as error:
            reason = f"{type(error).__name__}: {error}"
    raise EngineError(f"this process could not run a task, {TRIES} times: {reason}")
