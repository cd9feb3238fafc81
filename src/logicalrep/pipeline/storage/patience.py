"""Retries while a destination cannot be written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from logicalrep.observe.events import DestinationFailing, ErrorCounted, WaitEnded, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.storage.storage import StorageError
from logicalrep.postgres.retries import Wait

_Result = TypeVar("_Result")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Bounds of the pause between two attempts, in seconds."""


class Patience(Wait):
    """A wait for a destination, whose log lines say how much WAL the server retains meanwhile."""

    def __init__(
        self, observer: Observer, stop: threading.Event, retained: Callable[[], str], failing_seconds: float
    ) -> None:
        """Take the observer of the log lines, the event that ends the wait, and the text about retained WAL.

        Failures that last for `failing_seconds` are an error for a person.
        """
        super().__init__(stop=stop, say=self._report)
        self._observer = observer
        self._retained = retained
        self._failing_seconds = failing_seconds
        self._is_failing = False

    def run(self, action: Callable[[], _Result]) -> _Result:
        """Return the action's result. Raises StorageError if a retry cannot help, or once `stop` is set."""
        pause, failing_since = _FIRST_PAUSE, None
        while True:
            try:
                result = action()
            except StorageError as error:
                if self.is_over or not error.may_pass:
                    raise
                self._observer.on_event(ErrorCounted("destination"))
                failing_since = time.monotonic() if failing_since is None else failing_since
                if not self._is_failing and time.monotonic() - failing_since >= self._failing_seconds:
                    self._is_failing = True
                    self._observer.on_event(DestinationFailing(self._describe(error), is_first=True))
                else:
                    self.say(partial(self._describe, error))
                self.pause(max(pause, error.retry_seconds))
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                if self._is_failing:
                    self._is_failing = False
                    self._observer.on_event(WaitEnded("the destination can be written again: replication resumes"))
                return result

    def _report(self, text: str) -> None:
        is_failing = self._is_failing
        self._observer.on_event(DestinationFailing(text, is_first=False) if is_failing else WaitReported(text))

    def _describe(self, error: StorageError) -> str:
        return (
            f"{error}; replicate retries, and {self._retained()}: free space at the destination, or repair the access "
            "to it; no restart is needed"
        )
