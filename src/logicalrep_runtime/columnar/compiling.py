"""The listeners that are told when loops are compiled, which takes long. It imports nothing of the loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TEXT = "compiling loops, once on this machine: it takes a core about 20 seconds"

_listeners: list[Callable[[str], object]] = []


@contextmanager
def telling(listener: Callable[[str], object]) -> Iterator[None]:
    """Tell a listener, once, when this process compiles loops in this context; any thread may call it.

    Example:
        >>> with telling(print):
        ...     decode_batch(messages, session)
        compiling loops, once on this machine: it takes a core about 20 seconds
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        if listener in _listeners:
            _listeners.remove(listener)


def tell() -> None:
    """Tell all who have not been told yet."""
    while _listeners:
        _listeners.pop()(_TEXT)
