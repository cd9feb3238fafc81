"""Calls in another thread while the caller's thread runs a check."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_Result = TypeVar("_Result")


def call_watched(function: Callable[[], _Result], check: Callable[[], object], every: float) -> _Result:
    """Return the function's result. Calls `check` every `every` seconds; its error ends the wait, not the function."""
    result: Future[_Result] = Future()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="logicalrep-call", daemon=True).start()
    while not wait([result], every).done:
        check()
    return result.result()
