"""The waiting of a new slot, or of a snapshot, for transactions of others: people are told, and it can be ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from logicalrep.observe.observer import Observer
from logicalrep.pipeline.errors import Ended

_SAY_AGAIN = 5.0
"""The seconds between two sentences about what a snapshot waits for."""


def waiter(observer: Observer, stop: threading.Event) -> Callable[[str], None]:
    """Return a function that is called again and again with what a new slot waits for; it raises Ended after `stop`."""
    said_at = -_SAY_AGAIN

    def waiting(text: str) -> None:
        nonlocal said_at
        if stop.is_set():
            raise Ended
        if time.monotonic() - said_at >= _SAY_AGAIN:
            said_at = time.monotonic()
            observer.on_waiting(text)

    return waiting
