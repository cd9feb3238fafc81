"""A queue whose items a thread of its own handles, so that no table waits for a slow receiver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_LAST_SECONDS = 20.0
"""The most seconds that the end of a run waits for the last items."""


class EventQueue(Generic[_Item]):
    """Items that one thread handles in order."""

    def __init__(self, name: str, handle: Callable[[Iterator[_Item]], None]) -> None:
        """`name`: of the thread; `handle` is called once in it, with the items as they come."""
        self._items: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread = threading.Thread(target=lambda: handle(self._taken()), name=name, daemon=True)

    def put(self, item: _Item) -> None:
        """Add an item, without waiting."""
        self._items.put(item)

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Handle items within this context; its end waits up to 20 seconds for the last items."""
        self._thread.start()
        try:
            yield
        finally:
            self._items.put(None)
            self._thread.join(_LAST_SECONDS)

    def _taken(self) -> Iterator[_Item]:
        while (item := self._items.get()) is not None:
            yield item


__all__ = ["EventQueue"]
