"""A connection of two sides: bytes in, whole messages out, no socket.

Both sides change one state: the block that is open, what the session waits for, and its version. Which message changes
what, and how long each one is, comes from the layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar

from logicalrep_runtime.errors import DecodeError, codec_name, unknown_argument
from logicalrep_runtime.layout import MessageLayout
from logicalrep_runtime.layout_walk import walk
from logicalrep_runtime.operations import Constant, Integer, Measure, Take
from logicalrep_runtime.scalars import Buffer
from logicalrep_runtime.session_state import SessionState

_AnyMessage = TypeVar("_AnyMessage")
Sender = Literal["server", "client"]
MOST = 1 << 30
"""The bytes of the longest message that is kept, if not told otherwise: 1 GiB."""


class Conversation(SessionState, Generic[_AnyMessage]):
    """The messages of both sides of one connection, for a subclass that brings its tables.

    A message that raises DecodeError leaves the state as it was.
    """

    parsers: ClassVar[Mapping[int, Callable[..., Any]]]
    """The `parse` of each version by its number."""

    def __init__(self, version: int | None = None, *, encoding: str = "utf-8", **facts: bool | str) -> None:
        """Take the version that the sides may speak at most, the newest without it.

        `encoding` is that of texts before a message tells another; `given` are the session facts that no message tells.
        """
        if version is not None and version not in self.parsers:
            names = self.layouts.version_names
            versions = ", ".join(
                f"{number} ({names[number]})" if number in names else str(number) for number in self.parsers
            )
            raise ValueError(f"protocol version {version} is unknown; known are {versions}")
        untracked = [fact for fact in self.layouts.session if fact not in self.layouts.kept]
        for name in facts.keys() - set(untracked):
            raise unknown_argument(type(self), name, ["version", *untracked, "encoding"])
        super().__init__(max(self.parsers) if version is None else version, codec_name(encoding))
        initial_facts = {name: values[0] for name, values in self.layouts.values.items()}
        self._facts: dict[str, Any] = {**dict.fromkeys(self.layouts.session, False), **initial_facts, **facts}

    @property
    def facts(self) -> dict[str, Any]:
        """The value of each session fact: what the session waits for, for example."""
        return self._facts

    def _set(self, fact: str, value: Any) -> None:
        self._facts[fact] = value

    def decode(self, data: Buffer, *, sender: Sender) -> _AnyMessage:
        """Decode a whole message. Raises DecodeError if the bytes are not exactly one that may come here."""
        data = bytes(data)
        version, layout = self._layout(data, sender)
        message: _AnyMessage = self._parse(version, data, sender)
        assert layout is not None
        # A client may be ahead of what the server has read, so that blocks are the server's where both send a message.
        if layout.sender != "both" or sender == "server":
            if layout.places and self.block not in layout.places:
                raise self._out_of_place(layout)
            for name in layout.looking_up(version):
                error = self._not_described(data, layout, name, getattr(message, name), sender)
                if error is not None:
                    raise error
            self.encoding = self._told_encoding(data, layout, message, sender)
            self._follow(layout, message)
        self.version = version
        return message

    def _parse(self, version: int, data: bytes, sender: Sender) -> Any:
        """Call the `parse` of a version with the arguments that it takes."""
        arguments = {"encoding": self.encoding, **self.facts}
        accepted = {name: arguments[name] for name in self.layouts.parse_arguments if name in arguments}
        if len({message.sender for message in self.layouts.messages}) > 1:
            accepted["sender"] = sender
        return self.parsers[version](data, **accepted)

    def _layout(self, data: bytes, sender: Sender) -> tuple[int, MessageLayout | None]:
        """The layout of a message, and the version that it is of: its own where a constant says another."""
        layout = self.layouts.find(data, self.version, sender, self.facts) if data else None
        if layout is None:
            for version in sorted(self.parsers, reverse=True):
                if data and (layout := self.layouts.find(data, version, sender, self.facts)) is not None:
                    return version, layout
        return self.version, layout

    def _told_encoding(self, data: bytes, layout: MessageLayout, message: object, sender: Sender) -> str:
        """The encoding of texts after a message; DecodeError where Python has no codec for what it tells."""
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
    """The same of messages that say how long they are: bytes as they come, and the messages that are complete.

    After a DecodeError nobody knows where messages begin.
    """

    def __init__(
        self, version: int | None = None, *, encoding: str = "utf-8", most: int = MOST, **facts: bool | str
    ) -> None:
        """Take the bytes of the longest message as `most`, and the rest as a Conversation does."""
        super().__init__(version, encoding=encoding, **facts)
        self.most = most
        self._pending: dict[Sender, bytearray] = {"server": bytearray(), "client": bytearray()}

    def receive(self, data: Buffer, *, sender: Sender) -> Iterator[tuple[bytes, _AnyMessage]]:
        """Yield each message that is complete with these bytes, as it came and decoded.

        Raises:
            DecodeError: bytes are no message, or a message would be longer than `most`: then nothing of it is kept.
        """
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
        """The bytes of each side's message that is not complete."""
        return {sender: len(data) for sender, data in self._pending.items()}

    def _size(self, head: bytes, sender: Sender) -> int | None:
        """The bytes of the message that begins so; None where more are needed to know."""
        layout = self._awaited(head, sender)
        if layout is None:
            # `parse` says which messages there are.
            self._parse(self.version, head[:1], sender)
            raise AssertionError(f"a message without a layout: {head[:1].hex()}")
        offset = 0
        for operation in layout.operations:
            assert isinstance(operation, Integer)
            if (isinstance(operation, Measure) and not operation.of) or (
                isinstance(operation, Constant) and operation.is_length
            ):
                return self._told(layout, operation, offset, head)
            offset += operation.width
        return offset

    def _told(self, layout: MessageLayout, measure: Integer, offset: int, head: bytes) -> int | None:
        """The bytes of a message by its length, the integer at an offset."""
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
        """A message that may begin so; of those without a tag any, as they begin alike."""
        for message in self.layouts.messages:
            is_awaited = bool(message.when) and self.facts[message.when[0]] == message.when[1]
            if message.sender in (sender, "both") and not message.tag and is_awaited:
                first = message.operations[0]
                if not isinstance(first, Take) or head[0] in first.allowed:
                    return message
        return self.layouts.message(head[0], sender)
