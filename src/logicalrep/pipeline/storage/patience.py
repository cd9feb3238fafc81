"""Retries while a destination cannot be written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from logicalrep.observe.events import ErrorCounted, WaitReported
from logicalrep.observe.observer import Observer, passing
from logicalrep.pipeline.storage.storage import StorageError
from logicalrep.postgres.retries import Wait

_Result = TypeVar("_Result")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Bounds of the pause between two attempts, in seconds."""


class Patience(Wait):
    """A wait for a destination, whose log lines say how much WAL the server retains meanwhile."""

    def __init__(self, observer: Observer, stop: threading.Event, retained: Callable[[], str]) -> None:
        """Take the observer of the log lines, the event that ends the wait, and the text about retained WAL."""
        super().__init__(stop=stop, say=passing(observer, WaitReported))
        self._observer = observer
        self._retained = retained

    def run(self, action: Callable[[], _Result]) -> _Result:
        """Return the action's result. Raises StorageError if a retry cannot help, or once `stop` is set."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return action()
            except StorageError as error:
                if self.is_over or not error.may_pass:
                    raise
                self._observer.on_event(ErrorCounted("destination"))
                self.say(partial(self._describe, error))
                self.pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _describe(self, error: StorageError) -> str:
        return f"{error}; {self._retained()}"
