"""What happens when loops are compiled, which takes long: who is told, and what a thread does meanwhile.

It imports nothing of the loops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from logicalrep_runtime.columnar.watched_calls import call_watched

_TEXT = "compiling loops: cached for later runs (about 20 seconds of one core)"
ACTION_INTERVAL = 0.5
"""The seconds between two calls of what a thread does meanwhile."""

_listeners: list[Callable[[str], object]] = []
_thread = threading.local()
_running: list[Any] = []


@contextmanager
def announcing_compilation(listener: Callable[[str], object]) -> Iterator[None]:
    """Tell a listener, once, when this process compiles loops in this context; any thread may call it.

    Example:
        >>> with announcing_compilation(print):
        ...     decode_batch(messages, session)
        compiling loops: cached for later runs (about 20 seconds of one core)
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        if listener in _listeners:
            _listeners.remove(listener)


def announce_compilation() -> None:
    """Tell all who have not been told yet."""
    while _listeners:
        _listeners.pop()(_TEXT)


def is_compiling() -> bool:
    """Return whether this process compiles loops now."""
    return bool(_running)


@contextmanager
def compiling(loop: object) -> Iterator[None]:
    """Tell all who have not been told yet that a loop is compiled, and count it as one within this context."""
    announce_compilation()
    _running.append(loop)
    try:
        yield
    finally:
        _running.remove(loop)


@contextmanager
def acting_meanwhile(action: Callable[[], object]) -> Iterator[None]:
    """Do an action again and again while this thread waits for loops that it needs in this context.

    Example:
        >>> with acting_meanwhile(session.report_in_time):
        ...     decode_batch(messages, session)
    """
    _thread.action = action
    try:
        yield
    finally:
        del _thread.action


def compile_in_thread(compile: Callable[[], Any]) -> Any:
    """Return what a function compiles: in a thread of its own, if this one has something to do meanwhile."""
    action = getattr(_thread, "action", None)
    if action is None:
        return compile()
    return call_watched(compile, action, ACTION_INTERVAL)
