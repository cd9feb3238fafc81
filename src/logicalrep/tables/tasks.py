"""Functions run on many items at once: by Spark's executors, or in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Tasks(Protocol):
    """A runner of functions."""

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item, in their order; the first error ends all.

        Function, items and results are pickled, and an item may run more than once.
        """
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


class SparkTasks:
    """A runner on the executors of a Spark session: a task for each item.

    Example:
        >>> SparkTasks(session()).run(len, ["a", "bc"])
        [1, 2]
    """

    def __init__(self, spark: Any) -> None:
        """Take a classic session; Spark Connect has no such tasks."""
        self._context = spark.sparkContext

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the function's result for each item. Raises the error of the first task that failed for good."""
        if not items:
            return []
        results: list[_Result] = self._context.parallelize(items, len(items)).map(function).collect()
        return results


__all__ = ["LocalTasks", "SparkTasks", "Tasks"]
