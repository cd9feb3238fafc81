"""Calls of PySpark, which waits up to ten minutes for a server of Spark Connect that is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_Result = TypeVar("_Result")


def call_watched(function: Callable[[], _Result], check: Callable[[], object], every: float) -> _Result:
    """Return a function's result, or raise its error.

    Args:
        function: is called in a thread of its own, which goes on with it if `check` raises.
        check: is called until the function has ended; what it raises ends the waiting.
        every: the longest time between two calls of `check`, in seconds.

    Example:
        >>> call_watched(lambda: 1, lambda: None, every=1)
        1
    """
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    # PySpark started by the main thread would take over its handling of Ctrl-C.
    threading.Thread(target=run, name="logicalrep-spark", daemon=True).start()
    while not wait([done], every).done:
        check()
    return done.result()
