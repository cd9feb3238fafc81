"""The interface of those who take the events of `logicalrep replicate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from logicalrep.observe.events import RunEvent


class Observer(Protocol):
    """Takes the events of a run: for people, for metrics, or for programs."""

    def on_event(self, event: RunEvent) -> None:
        """Take an event, in any of several threads. The work waits for the call, which raises no error."""


class Observers(Observer):
    """Passes each event on to several observers; without any, drops it."""

    def __init__(self, *observers: Observer) -> None:
        """Take the observers, which get each event in this order."""
        self._observers = observers

    def on_event(self, event: RunEvent) -> None:
        """Pass an event on."""
        for observer in self._observers:
            observer.on_event(event)


def passing(observer: Observer, event: Callable[[str], RunEvent]) -> Callable[[str], None]:
    """Return a function that passes a text to an observer as an event of one type.

    Example:
        >>> warn = passing(Observers(), WarningIssued)
        >>> warn("the disk is nearly full")
    """
    return lambda text: observer.on_event(event(text))
