"""How tests wait: for what is to happen, not for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(condition: Callable[[], bool], query: Any = None, seconds: float = 300) -> None:
    """Wait until something holds; a query that has failed raises its error. The bound is for what never happens."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while not condition():
        if query is not None and query.exception() is not None:
            raise query.exception()
        if time.monotonic() > deadline:
            raise AssertionError("it did not happen in time")
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
