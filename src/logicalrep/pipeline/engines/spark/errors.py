"""Spark's errors in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from logicalrep.pipeline.engines.engine import EngineEndedError, EngineError
from logicalrep.postgres.retries import Ended
from logicalrep_runtime.errors import LogicalRepError

NO_TASK = "Spark could not run a task"


_ENDING = 2.0
"""The most seconds between an error of an ending Java and its exit."""


def java_has_ended(within: float) -> bool:
    """Return whether the Java that this process has started has ended, or ends within the given seconds."""
    from logicalrep.spark.java import has_ended

    return has_ended(within)


def refuse_ended(has_ended: Callable[[float], bool] = java_has_ended) -> None:
    """Raise EngineEndedError if the Java has ended, by default the Java that this process has started."""
    if has_ended(0):
        raise EngineEndedError("Spark is no longer available: its Java has ended")


@contextmanager
def spark_errors(what: str, has_ended: Callable[[float], bool] = java_has_ended) -> Iterator[None]:
    """Convert an error of Spark to EngineError, with `what` at the start of its text.

    Raises EngineEndedError if Spark's Java has ended, according to `has_ended`, which takes the seconds to wait.
    """
    try:
        yield
    except (LogicalRepError, Ended):
        raise
    except Exception as error:
        if has_ended(_ENDING):
            raise EngineEndedError(f"{what}: its Java has ended") from error
        raise EngineError(f"{what}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the last line of the task's own traceback, which Java's may follow, or else the first line."""
    # PySpark connects to Java through py4j.
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return "its Java has ended"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Spark Connect appends an SQL state to a traceback.
    own = list(takewhile(lambda line: not line.startswith(("at org.apache.spark", "SQLSTATE: ")), lines))
    if not own:
        return type(error).__name__
    # The form of gRPC errors, Spark Connect's transport.
    for line in own:
        if line.startswith("details = "):
            return line.removeprefix("details = ").strip('"')
    has_traceback = any("Traceback (most recent call last)" in line for line in own)
    return own[-1] if has_traceback or len(own) < len(lines) else own[0]
