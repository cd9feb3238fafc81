"""A decoder of one side's messages: bytes in, messages out, no socket. It tracks the arguments of `parse`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from logicalrep_runtime.errors import check_version, codec_name, unknown_argument
from logicalrep_runtime.layout import MessageLayout
from logicalrep_runtime.native import session_decode
from logicalrep_runtime.scalars import Buffer
from logicalrep_runtime.session_state import SessionState

_AnyMessage = TypeVar("_AnyMessage", covariant=True)

_Entry = tuple[Callable[..., Any], MessageLayout, tuple[str, ...], tuple[tuple[str, Collection[int]], ...], bool]
"""An entry for a tag in a session: `parse`, layout, legal blocks; the fields that refer to described objects, each with
the objects described so far; whether the message changes the session's state."""

_PREPARED = frozenset({"_unknown", "_entries"})
"""The attributes that follow from the version and the facts."""


class SessionDecoder(SessionState, Generic[_AnyMessage]):
    """A protocol's decoder; subclasses define the protocol's tables."""

    __slots__ = ("__dict__", "__weakref__", "_native_decode")

    parsers: ClassVar[Mapping[int, Callable[..., Any]]]
    """Each version's `parse` by the version's number."""

    _native_decode: Callable[..., Any] | None

    def __init__(self, version: int, *, encoding: str = "utf-8", **facts: bool) -> None:
        """`facts` are the session facts that no message sets; false by default."""
        untracked = [fact for fact in self.layouts.session if fact not in self.layouts.tracked]
        for name in facts.keys() - set(untracked):
            raise unknown_argument(type(self), name, ["version", *untracked, "encoding"])
        check_version(version, self.parsers)
        codec_name(encoding)
        super().__init__(version, encoding)
        for fact in self.layouts.session:
            setattr(self, fact, facts.get(fact, False))
        self._prepare()

    def _prepare(self) -> None:
        # For bytes with an unknown tag: `parse` refuses them.
        self._unknown = (self.parsers[self.version], *self._entry(self.layouts.messages[0])[1:])
        layouts = [
            layout
            for layout in self.layouts.messages
            if layout.sender != "client" and layout.is_sent_in(self.version, self.facts)
        ]
        self._entries: dict[int, _Entry] = {ord(layout.tag): self._entry(layout) for layout in layouts}
        readers = [(layout, self._version_of(layout), self.parsers[self._version_of(layout)]) for layout in layouts]
        self._native_decode = session_decode(type(self), readers)

    def __getstate__(self) -> Mapping[str, Any]:
        attributes = {**vars(self), **self.facts}
        names = ("version", "encoding", "described", "block")
        own = {name: value for name, value in attributes.items() if name not in _PREPARED}
        return {**own, **{name: getattr(self, name) for name in names}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._prepare()

    def _version_of(self, layout: MessageLayout) -> int:
        return max(layout.since, self.version)

    def _entry(self, layout: MessageLayout) -> _Entry:
        version = self._version_of(layout)
        names = layout.reference_fields(version)
        looks_up = tuple((name, self.described[layout.looks_up[name]]) for name in names)
        has_effects = bool(layout.opens or layout.closes or layout.changes or layout.describes)
        return self.parsers[version], layout, layout.places, looks_up, has_effects

    def decode(self, data: Buffer) -> _AnyMessage:
        """Decode the next message. Raises DecodeError unless the bytes are exactly one message that is legal here."""
        decode = self._native_decode
        message: _AnyMessage
        if decode is not None and (message := decode(self, data)) is not None:
            return message
        if type(data) is not bytes:
            return SessionDecoder.decode(self, bytes(memoryview(data)))
        parse, layout, places, looks_up, has_effects = self._entries.get(data[0] if data else 0, self._unknown)
        message = self._read(parse, data)
        if self.block not in places:
            raise self._place_error(layout)
        for name, described in looks_up:
            number = getattr(message, name)
            if type(number) is tuple or number not in described:
                error = self._undescribed_error(data, layout, name, number)
                if error is not None:
                    raise error
        if has_effects:
            self._apply(layout, message)
        return message

    def _read(self, parse: Callable[..., _AnyMessage], data: bytes) -> _AnyMessage:
        """Call `parse` with its session facts. Generated subclasses spell them out, which is faster."""
        raise NotImplementedError

    @property
    def facts(self) -> Mapping[str, bool]:
        """The session facts by name, as they hold for the next message."""
        return {fact: getattr(self, fact) for fact in self.layouts.session}

    def _set(self, fact: str, value: bool) -> None:
        setattr(self, fact, value)
