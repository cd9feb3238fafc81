"""The state of a session's decoder: bytes in, messages out, no socket; it knows what `parse` has to be told.

What a message may follow and what it changes comes from the layouts, which the generated `Decoder` brings; this file
only keeps the state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from logicalrep_runtime.errors import DecodeError, check_version, codec_name, unknown_argument
from logicalrep_runtime.layout import MessageLayout, ProtocolLayout
from logicalrep_runtime.layout_walk import walk
from logicalrep_runtime.operations import Take
from logicalrep_runtime.scalars import Buffer

_AnyMessage = TypeVar("_AnyMessage", covariant=True)

OUTSIDE = "outside"
"""The place of messages that stand between blocks."""

_Known = tuple[Callable[..., Any], MessageLayout, tuple[str, ...], tuple[tuple[str, Collection[int]], ...], bool]
"""An entry for a tag in a session: its `parse`, its layout, and the layout's places; the fields that it looks up,
each with what has been described; whether it changes the session's state."""


class SessionDecoder(Generic[_AnyMessage]):
    """The decoder of a protocol, for a subclass that brings its tables."""

    layouts: ClassVar[ProtocolLayout]
    """The protocol's messages."""
    parsers: ClassVar[Mapping[int, Callable[..., Any]]]
    """The `parse` of each version by its number."""

    def __init__(self, version: int, *, encoding: str = "utf-8", **given: bool) -> None:
        """`given` are the session facts that no message tells; one that is not there does not hold."""
        known = [fact for fact in self.layouts.session if fact not in self.layouts.kept]
        for name in given.keys() - set(known):
            raise unknown_argument(type(self), name, ["version", *known, "encoding"])
        check_version(version, self.parsers)
        codec_name(encoding)
        self.version = version
        self.encoding = encoding
        for fact in self.layouts.session:
            setattr(self, fact, given.get(fact, False))
        self.described: dict[str, dict[Any, Any]] = {
            layout.name: {} for layout in self.layouts.messages if layout.describes
        }
        """The last message for each number, by the name of the message that describes something."""
        self.block = OUTSIDE
        """The session's place: `outside`, or the block that is open."""
        # Bytes without a known tag: `parse` refuses them.
        self._unknown = self._entry(self.layouts.messages[0])
        self._known: dict[int, _Known] = {
            ord(layout.tag): self._entry(layout)
            for layout in self.layouts.messages
            if layout.sender == "server" and layout.comes_in(version, given)
        }

    def _entry(self, layout: MessageLayout) -> _Known:
        version = max(layout.since, self.version)
        rows = [one for one in layout.fields if one.name in layout.looks_up and one.since <= version]
        looks_up = tuple((one.name, self.described[layout.looks_up[one.name]]) for one in rows)
        is_followed = bool(layout.opens or layout.closes or layout.sets or layout.clears or layout.describes)
        return self.parsers[version], layout, layout.places, looks_up, is_followed

    def decode(self, data: Buffer) -> _AnyMessage:
        """Decode the next message. Raises DecodeError if the bytes are not exactly one that may come here."""
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        parse, layout, places, looks_up, is_followed = self._known.get(data[0] if data else 0, self._unknown)
        message = self._read(parse, data)
        if self.block not in places:
            raise self._out_of_place(layout)
        for name, described in looks_up:
            number = getattr(message, name)
            is_there = all(map(described.__contains__, number)) if type(number) is tuple else number in described
            if not is_there:
                raise self._not_described(data, layout, name, number, described)
        if is_followed:
            self._follow(layout, message)
        return message

    def _read(self, parse: Callable[..., _AnyMessage], data: bytes) -> _AnyMessage:
        """Call `parse` with the session facts that it is told; the generated class names them, which is faster."""
        raise NotImplementedError

    @property
    def facts(self) -> Mapping[str, bool]:
        """All session facts by name: whether each holds for the message that comes next."""
        return {fact: getattr(self, fact) for fact in self.layouts.session}

    def _follow(self, layout: MessageLayout, message: object) -> None:
        """Change the state as the message does."""
        if layout.describes:
            self.described[layout.name][getattr(message, layout.describes)] = message
        if layout.opens:
            self.block = layout.opens
        elif layout.closes:
            self.block = OUTSIDE
        if layout.sets:
            setattr(self, layout.sets, True)
        if layout.clears:
            setattr(self, layout.clears, False)

    def _out_of_place(self, layout: MessageLayout) -> DecodeError:
        here = self.layouts.outside if self.block == OUTSIDE else f"inside a {self.block}"
        allowed = [f"inside a {place}" for place in layout.places if place != OUTSIDE]
        if OUTSIDE in layout.places:
            allowed.insert(0, self.layouts.outside)
        return DecodeError(layout.name, "tag", 0, f"{layout.name} {' or '.join(allowed)}", f"it {here}")

    def _not_described(
        self, data: bytes, layout: MessageLayout, name: str, number: int | tuple[int, ...], described: Collection[int]
    ) -> DecodeError:
        """The error for a number, or the first of several, that nothing has described: no row of it can be read."""
        path = name
        if isinstance(number, tuple):
            index, number = next((index, each) for index, each in enumerate(number) if each not in described)
            path = f"{name}[{index}]"
        steps = walk(self.layouts, self.version, data, facts=self.facts, encoding=self.encoding)
        step = next(step for step in steps if step.path == path)
        describing = next(other for other in self.layouts.messages if other.name == layout.looks_up[name])
        expected = f"{describing.described_as} that a {describing.name} has described"
        assert isinstance(step.operation, Take)
        assert step.operation.wrapper is not None
        type_name = step.operation.wrapper.__name__.upper()
        return DecodeError(layout.name, path, step.offset, expected, f"{type_name} {number}")
