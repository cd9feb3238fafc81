"""A decoder of both sides of a connection: bytes in, whole messages out, no socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar

from logicalrep_runtime.errors import DecodeError, codec_name, unknown_argument
from logicalrep_runtime.layout import MessageLayout
from logicalrep_runtime.layout_walk import walk
from logicalrep_runtime.layout_words import of_version
from logicalrep_runtime.operations import Constant, Integer, Measure, Take
from logicalrep_runtime.scalars import Buffer
from logicalrep_runtime.session_state import SessionState

_AnyMessage = TypeVar("_AnyMessage")
Sender = Literal["server", "client"]
MOST = 1 << 30
"""The default limit of a message's length: 1 GiB."""


class Conversation(SessionState, Generic[_AnyMessage]):
    """A decoder of both sides of one connection; subclasses define the protocol's tables.

    A message that raises DecodeError does not change the state.
    """

    parsers: ClassVar[Mapping[int, Callable[..., Any]]]

    def __init__(self, version: int | None = None, *, encoding: str = "utf-8", **facts: bool | str) -> None:
        """`version`: the highest that both sides support. Raises ValueError (version) or TypeError (facts)."""
        if version is not None and version not in self.parsers:
            names = self.layouts.version_names
            versions = ", ".join(
                f"{number} ({names[number]})" if number in names else str(number) for number in self.parsers
            )
            raise ValueError(f"protocol version {version} is unknown; known are {versions}")
        untracked = [fact for fact in self.layouts.session if fact not in self.layouts.tracked]
        for name in facts.keys() - set(untracked):
            raise unknown_argument(type(self), name, ["version", *untracked, "encoding"])
        super().__init__(max(self.parsers) if version is None else version, codec_name(encoding))
        initial_facts = {name: values[0] for name, values in self.layouts.values.items()}
        self._facts: dict[str, Any] = {**dict.fromkeys(self.layouts.session, False), **initial_facts, **facts}

    @property
    def facts(self) -> dict[str, Any]:
        return self._facts

    def _set(self, fact: str, value: Any) -> None:
        self._facts[fact] = value

    def decode(self, data: Buffer, *, sender: Sender) -> _AnyMessage:
        """Decode a whole message. Raises DecodeError unless the bytes are exactly one message that is legal here."""
        data = bytes(data)
        version, layout = self._layout(data, sender)
        message: _AnyMessage = self._parse(version, data, sender)
        assert layout is not None
        # A client may be ahead of the server, so only the server's messages open and close blocks.
        if layout.sender != "both" or sender == "server":
            if layout.places and self.block not in layout.places:
                raise self._place_error(layout)
            for name in layout.reference_fields(version):
                error = self._undescribed_error(data, layout, name, getattr(message, name), sender)
                if error is not None:
                    raise error
            self.encoding = self._encoding_after(data, layout, message, sender)
            self._apply(layout, message)
        self.version = version
        return message

    def _parse(self, version: int, data: bytes, sender: Sender) -> Any:
        arguments = {"encoding": self.encoding, **self.facts}
        accepted = {name: arguments[name] for name in self.layouts.parse_arguments if name in arguments}
        if len({message.sender for message in self.layouts.messages}) > 1:
            accepted["sender"] = sender
        return self.parsers[version](data, **accepted)

    def _layout(self, data: bytes, sender: Sender) -> tuple[int, MessageLayout | None]:
        """Return a message's version and layout. A constant in the message may decide the version."""
        layout = self.layouts.find(data, self.version, sender, self.facts) if data else None
        if layout is None:
            for version in sorted(self.parsers, reverse=True):
                if data and (layout := self.layouts.find(data, version, sender, self.facts)) is not None:
                    return version, layout
        return self.version, layout

    def _encoding_after(self, data: bytes, layout: MessageLayout, message: object, sender: Sender) -> str:
        name, setting, value = layout.tells_encoding or ("", "", "")
        if not name or getattr(message, name) != setting:
            return self.encoding
        encoding_name = getattr(message, value)
        if encoding_name not in self.layouts.encodings:
            steps = walk(self.layouts, self.version, data, facts=self.facts, encoding=self.encoding, sender=sender)
            offset = next(step.offset for step in steps if step.path == value)
            raise DecodeError(layout.name, value, offset, f"a {setting} that Python has a codec for", encoding_name)
        return self.layouts.encodings[encoding_name]


class FramedConversation(Conversation[_AnyMessage]):
    """A Conversation of messages with a length field: takes bytes as they arrive, and yields complete messages.

    After a DecodeError the boundaries of messages are unknown: drop the connection.
    """

    def __init__(
        self, version: int | None = None, *, encoding: str = "utf-8", most: int = MOST, **facts: bool | str
    ) -> None:
        """`most` is the limit of a message's length in bytes; see Conversation for other arguments."""
        super().__init__(version, encoding=encoding, **facts)
        self.most = most
        self._pending: dict[Sender, bytearray] = {"server": bytearray(), "client": bytearray()}

    def receive(self, data: Buffer, *, sender: Sender) -> Iterator[tuple[bytes, _AnyMessage]]:
        """Yield each message that is complete with these bytes. DecodeError drops the buffered bytes."""
        pending = self._pending[sender]
        pending += data
        while pending:
            try:
                size = self._size(bytes(pending[:16]), sender)
            except DecodeError:
                pending.clear()
                raise
            if size is None or len(pending) < size:
                return
            whole = bytes(pending[:size])
            del pending[:size]
            yield whole, self.decode(whole, sender=sender)

    @property
    def pending(self) -> Mapping[Sender, int]:
        return {sender: len(data) for sender, data in self._pending.items()}

    def _size(self, head: bytes, sender: Sender) -> int | None:
        """Return the length of the message that begins with `head`, in bytes; None if `head` is too short."""
        layout = self._awaited(head, sender)
        if layout is None:
            # `parse` raises an error that lists the legal tags.
            self._parse(self.version, head[:1], sender)
            raise AssertionError(f"a message without a layout: {head[:1].hex()}")
        offset = 0
        for operation in of_version(layout.operations, self.version):
            assert isinstance(operation, Integer)
            if (isinstance(operation, Measure) and not operation.of) or (
                isinstance(operation, Constant) and operation.is_length
            ):
                return self._framed_size(layout, operation, offset, head)
            offset += operation.width
        return offset

    def _framed_size(self, layout: MessageLayout, measure: Integer, offset: int, head: bytes) -> int | None:
        if len(head) < offset + measure.width:
            return None
        length = int.from_bytes(head[offset : offset + measure.width], measure.order, signed=measure.signed)
        name = layout.name if layout.tag else "message"
        if length < measure.width:
            raise DecodeError(name, measure.name, offset, f"{measure.width} or more", str(length))
        if offset + length > self.most:
            raise DecodeError(name, measure.name, offset, f"at most {self.most - offset}", str(length))
        return offset + length

    def _awaited(self, head: bytes, sender: Sender) -> MessageLayout | None:
        """Return a layout that `head` may begin: any of the expected messages without a tag, as all begin alike."""
        messages = [
            message
            for message in self.layouts.messages
            if message.sender in (sender, "both") and message.since <= self.version
        ]
        for message in messages:
            is_awaited = bool(message.when) and self.facts[message.when[0]] == message.when[1]
            if not message.tag and is_awaited:
                first = of_version(message.operations, self.version)[0]
                if not isinstance(first, Take) or first.width > 1 or not first.allowed or head[0] in first.allowed:
                    return message
        return next((message for message in messages if message.tag == chr(head[0])), None)
