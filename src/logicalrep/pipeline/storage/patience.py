"""Retries while a destination cannot be written; the slot waits for nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from logicalrep.observe.observer import Observer
from logicalrep.pipeline.storage.storage import StorageError

_Result = TypeVar("_Result")

_SAY_AGAIN = 60.0
"""The seconds between two lines about it."""
_LONGEST_PAUSE = 30.0


class Patience:
    """Repeats what a destination refuses, and says how much WAL that costs the server."""

    def __init__(self, observer: Observer, stop: threading.Event, retained: Callable[[], str]) -> None:
        """Take the receiver of the lines, the event that ends the waiting, and the text on the retained WAL."""
        self._observer = observer
        self._stop = stop
        self._retained = retained

    @property
    def is_over(self) -> bool:
        """Whether `stop` is set."""
        return self._stop.is_set()

    def run(self, action: Callable[[], _Result]) -> _Result:
        """Return the action's result. Raises StorageError if it cannot pass, or once `stop` is set."""
        pause, said = 0.5, -_SAY_AGAIN
        while True:
            try:
                return action()
            except StorageError as error:
                if self.is_over or not error.may_pass:
                    raise
                self._observer.on_error("destination")
                if time.monotonic() - said > _SAY_AGAIN:
                    said = time.monotonic()
                    self._observer.on_waiting(f"{error}; {self._retained()}")
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
