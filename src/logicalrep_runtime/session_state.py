"""A session's state, which messages change: the open block, described objects, and the session's facts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout import OUTSIDE, MessageLayout, ProtocolLayout
from logicalrep_runtime.layout_walk import walk
from logicalrep_runtime.operations import Take


class SessionState:
    """A session's state; subclasses define the protocol's tables and store the facts."""

    # The native decoder reaches the state by its slots.
    __slots__ = ("block", "described", "encoding", "version")

    layouts: ClassVar[ProtocolLayout]
    """The protocol's messages."""

    def __init__(self, version: int, encoding: str) -> None:
        self.version = version
        self.encoding = encoding
        self.described: dict[str, dict[Any, Any]] = {
            layout.name: {} for layout in self.layouts.messages if layout.describes
        }
        """The last description of each number, by the describing message's name."""
        self.block = OUTSIDE

    @property
    def facts(self) -> Mapping[str, Any]:
        """The session facts by name, as they hold for the next message."""
        raise NotImplementedError

    def _set(self, fact: str, value: Any) -> None:
        raise NotImplementedError

    def _apply(self, layout: MessageLayout, message: object) -> None:
        if layout.describes:
            self.described[layout.name][getattr(message, layout.describes)] = message
        if layout.opens:
            self.block = layout.opens
        elif self.block in layout.closes:
            self.block = OUTSIDE
        for fact, value in layout.changes:
            self._set(fact, value)

    def _place_error(self, layout: MessageLayout) -> DecodeError:
        state = self.layouts.outside if self.block == OUTSIDE else f"inside a {self.block}"
        allowed = [f"inside a {place}" for place in layout.places if place != OUTSIDE]
        if OUTSIDE in layout.places:
            allowed.insert(0, self.layouts.outside)
        field = "tag" if layout.tag else "message"
        return DecodeError(layout.name, field, 0, f"{layout.name} {' or '.join(allowed)}", f"it {state}")

    def _undescribed_error(
        self, data: bytes, layout: MessageLayout, name: str, number: Any, sender: str = "server"
    ) -> DecodeError | None:
        described: Collection[int] = self.described[layout.looks_up[name]]
        path = name
        if isinstance(number, tuple):
            index = next((index for index, item in enumerate(number) if item not in described), None)
            if index is None:
                return None
            path, number = f"{name}[{index}]", number[index]
        elif number in described:
            return None
        steps = walk(self.layouts, self.version, data, facts=self.facts, encoding=self.encoding, sender=sender)
        step = next(step for step in steps if step.path == path)
        describing = next(message for message in self.layouts.messages if message.name == layout.looks_up[name])
        expected = f"{describing.described_as} that a {describing.name} has described"
        assert isinstance(step.operation, Take)
        assert step.operation.wrapper is not None
        type_name = step.operation.wrapper.__name__.upper()
        return DecodeError(layout.name, path, step.offset, expected, f"{type_name} {number}")
