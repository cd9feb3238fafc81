"""Announcements of compilation, which takes long, and actions of the waiting thread. Imports no kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from logicalrep_runtime.columnar.watched_calls import call_watched

STEP = "compiling loops: cached for later runs (about 20 seconds of one core)"
ACTION_INTERVAL = 0.5
"""Seconds between two calls of the action of a waiting thread."""

_listeners: list[Callable[[str], object]] = []
_thread = threading.local()
_running: list[Any] = []


@contextmanager
def announcing_compilation(listener: Callable[[str], object]) -> Iterator[None]:
    """Call a listener once if this process compiles loops within this context. Any thread may make the call."""
    _listeners.append(listener)
    try:
        yield
    finally:
        if listener in _listeners:
            _listeners.remove(listener)


def announce_compilation() -> None:
    while _listeners:
        _listeners.pop()(STEP)


def is_compiling() -> bool:
    return bool(_running)


@contextmanager
def compiling(loop: object) -> Iterator[None]:
    """Announce a compilation to listeners that were not called yet; `is_compiling` is true within this context."""
    announce_compilation()
    _running.append(loop)
    try:
        yield
    finally:
        _running.remove(loop)


@contextmanager
def acting_meanwhile(action: Callable[[], object]) -> Iterator[None]:
    """Call an action every ACTION_INTERVAL seconds while this thread waits for a compilation within this context."""
    _thread.action = action
    try:
        yield
    finally:
        del _thread.action


def compile_in_thread(compile: Callable[[], Any]) -> Any:
    """Return the function's result. Runs it in another thread if this thread has an action of `acting_meanwhile`."""
    action = getattr(_thread, "action", None)
    if action is None:
        return compile()
    return call_watched(compile, action, ACTION_INTERVAL)
