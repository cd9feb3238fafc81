"""The interface of observers: they receive the events of `logicalrep replicate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from logicalrep.observe.events import RunEvent


class Observer(Protocol):
    """Receives the events of a run: for people, for metrics, or for programs."""

    def on_event(self, event: RunEvent) -> None:
        """Handle an event. Several threads call it, and wait for it; it must raise nothing."""


class Observers(Observer):
    """Forwards each event to observers, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def on_event(self, event: RunEvent) -> None:
        for observer in self._observers:
            observer.on_event(event)


def passing(observer: Observer, event: Callable[[str], RunEvent]) -> Callable[[str], None]:
    """Return a function that sends a text to an observer as an event of the given type."""
    return lambda text: observer.on_event(event(text))
