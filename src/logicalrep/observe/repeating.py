"""A thread that does the same again and again while something else goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_JOIN_TIMEOUT = 5.0
"""The longest wait for an action that is being done at the end, in seconds."""


@contextmanager
def repeating(action: Callable[[], None], pause: Callable[[], float], name: str) -> Iterator[None]:
    """Do an action at once and again within this context, in a thread of its own.

    Args:
        action: the action, which raises no error.
        pause: returns the seconds until the next one.
        name: the thread's name.

    Example:
        >>> with repeating(lambda: print("still here"), lambda: 5.0, "clock"):
        ...     work()
    """
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
