"""The outcome of a function in another process: its result or its error."""

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
    """An unexpected error of the work on one table."""

    code = "TABLE_FAILED"

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the unexpected error's text; a note has its traceback."""
        table_error = cls(f"unexpected error: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        table_error.add_note("".join(traceback.format_exception(error)))
        return table_error


class Caught:
    """A function that returns errors: of a raised error, Spark would retry and then pass on only the text."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def __call__(self, item: object) -> Outcome:
        """Return the outcome for an item. Raises OSError and MemoryError: another try may succeed."""
        try:
            return None, self._function(item)
        except (LogicalRepError, psycopg.Error) as error:
            return error, None
        except (OSError, MemoryError):
            # Another machine may have more space, or a file that this machine lacks.
            raise
        except Exception as error:
            return TableFailedError.of(error), None


def pickled(outcome: Outcome) -> bytes:
    """Return the pickled outcome; an error that cannot be pickled becomes a TableFailedError with its text."""
    try:
        data = pickle.dumps(outcome)
        if outcome[0] is not None:
            # An error of another library may not be unpicklable.
            pickle.loads(data)
    except Exception as error:
        data = pickle.dumps((TableFailedError.of(outcome[0] or error), None))
    return data


def result_of(outcome: Outcome) -> Any:
    raised, result = outcome
    if raised is not None:
        raise raised
    return result


def run_in_process(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    """Return the result of the function in this process. Raises the errors of every engine."""
    for _ in range(TRIES):
        try:
            result: _Result = result_of(Caught(function)(item))
            return result
        except (OSError, MemoryError) as error:
            reason = f"{type(error).__name__}: {error}"
    raise EngineError(f"this process could not run a task, {TRIES} times: {reason}")
