"""A thread that repeats an action at intervals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_JOIN_TIMEOUT = 5.0
"""The longest wait for an action that runs when the context ends, in seconds."""


@contextmanager
def repeating(action: Callable[[], None], pause: Callable[[], float], name: str) -> Iterator[None]:
    """Run an action, which raises no error, immediately and after each `pause()` seconds, while this context lasts."""
    ending = threading.Event()

    def run() -> None:
        while True:
            action()
            if ending.wait(pause()):
                return

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(_JOIN_TIMEOUT)
