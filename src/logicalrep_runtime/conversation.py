"""A decoder of both sides of a connection: bytes in, whole messages out, no socket."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from struct import Struct as Format
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

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

_State = tuple[int | str, ...]
"""The version, the sender, a message's first byte (-1 for no bytes) and the session facts."""


class _AllowedMessage(NamedTuple):
    """A message that the session's state allows."""

    version: int
    layout: MessageLayout | None
    """None for bytes that are no message: `parse` refuses them."""
    places: tuple[str, ...]
    """The legal blocks; () for anywhere."""
    has_effects: bool
    read: Callable[..., Any] | None
    """The native reader; None without it."""
    arguments: tuple[Any, ...]
    """The session facts that the native reader takes."""


_NativeFrame = tuple[int, int, bool]
"""The offset and width of a message's length, and whether the length is signed."""


class _StatelessMessages(NamedTuple):
    """The messages that do not change the session's state, for the native reader."""

    read: Callable[..., tuple[list[Any], int]] | None
    """The native reader; None without it."""
    tags: bytes
    """The first bytes of the messages; empty for none."""
    frame: _NativeFrame
    arguments: tuple[Any, ...]


class _Frame(NamedTuple):
    """The length of the messages that begin with a byte."""

    name: str
    """The message, or `message` for messages without a tag."""
    offset: int
    """The offset of the length, which does not count the bytes before; the size without a length."""
    measure: Integer | None
    """The length; None for messages of one size."""
    unpack_from: Callable[[Buffer, int], tuple[int, ...]]


class Conversation(SessionState, Generic[_AnyMessage]):
    """A decoder of both sides of one connection; subclasses define the protocol's tables.

    A message that raises DecodeError does not change the state.
    """

    parsers: ClassVar[Mapping[int, Callable[..., Any]]]
    """Each version's `parse` by the version's number."""
    readers: ClassVar[Mapping[tuple[int, Sender], Callable[..., Any] | None]]
    """The native readers, if installed, by version and sender."""
    _entries: ClassVar[dict[_State, _AllowedMessage]]
    _frames: ClassVar[dict[_State, _Frame]]
    _runs: ClassVar[dict[_State, _StatelessMessages]]

    def __init_subclass__(cls) -> None:
        cls._entries, cls._frames, cls._runs = {}, {}, {}

    def __init__(self, version: int | None = None, *, encoding: str = "utf-8", **facts: bool | str) -> None:
        """`version`: the highest that both sides support. Raises ValueError (version) or TypeError (facts)."""
        if version is not None and version not in self.parsers:
            names = self.layouts.version_names
            versions = ", ".join(
                f"{number} ({names[number]})" if number in names else str(number) for number in self.parsers
            )
            raise ValueError(f"protocol version {version} is unknown; the versions are {versions}")
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
        return self._decode(data, sender, self._state(data[0] if data else -1, sender))

    def _state(self, first: int, sender: Sender) -> _State:
        return self.version, sender, first, *self._facts.values()

    def _decode(self, data: bytes, sender: Sender, state: _State) -> _AnyMessage:
        entry = self._entries.get(state) or self._entry(data, sender, state)
        version, layout, places, has_effects, read, arguments = entry
        message: _AnyMessage | None = None
        if read is not None:
            message = read(data, self.encoding, *arguments)
        if message is None:
            message = self._parse(version, data, sender)
        assert layout is not None
        if places and self.block not in places:
            raise self._place_error(layout)
        if has_effects:
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

    def _entry(self, data: bytes, sender: Sender, state: _State) -> _AllowedMessage:
        """Return a message's entry, and keep the entry if the first byte alone identifies the message."""
        version, layout = self._layout(data, sender)
        # A client may be ahead of the server, so only the server's messages open and close blocks.
        is_followed = layout is not None and (layout.sender != "both" or sender == "server")
        has_effects = layout is not None and bool(
            layout.reference_fields(version)
            or layout.tells_encoding
            or layout.describes
            or layout.opens
            or layout.closes
            or layout.sets
            or layout.clears
        )
        places = layout.places if layout is not None and is_followed else ()
        read = self.readers.get((version, sender))
        entry = _AllowedMessage(version, layout, places, is_followed and has_effects, read, self._read_arguments())
        candidates = self.layouts.candidates(data[:1], self.version, sender, self.facts)
        if len(candidates) == 1 and candidates[0].tag:
            self._entries[state] = entry
        return entry

    def _read_arguments(self) -> tuple[Any, ...]:
        """Return the session facts that the native reader takes."""
        return tuple(self._facts[name] for name in self.layouts.parse_arguments if name in self._facts)

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
        self._ready: dict[Sender, deque[tuple[bytes, _AnyMessage]]] = {"server": deque(), "client": deque()}
        self._pending: dict[Sender, bytearray] = {"server": bytearray(), "client": bytearray()}

    def receive(self, data: Buffer, *, sender: Sender) -> Iterator[tuple[bytes, _AnyMessage]]:
        """Yield each message that is complete with these bytes. DecodeError drops the buffered bytes."""
        pending, ready, frames = self._pending[sender], self._ready[sender], self._frames
        pending += data
        while pending or ready:
            if ready or self._read_run(sender):
                yield ready.popleft()
                continue
            state = self._state(pending[0], sender)
            try:
                name, size, measure, unpack_from = frames.get(state) or self._frame(pending[0], sender, state)
                if measure is not None:
                    if len(pending) < size + measure.width:
                        return
                    (length,) = unpack_from(pending, size)
                    if not measure.width <= length <= self.most - size:
                        expected = (
                            f"at most {self.most - size}" if length >= measure.width else f"{measure.width} or more"
                        )
                        raise DecodeError(name, measure.name, size, expected, str(length))
                    size += length
            except DecodeError:
                pending.clear()
                raise
            if len(pending) < size:
                return
            whole = bytes(pending[:size])
            del pending[:size]
            yield whole, self._decode(whole, sender, state)

    @property
    def pending(self) -> Mapping[Sender, int]:
        """The number of bytes of each side that no yielded message has."""
        return {
            sender: sum(len(whole) for whole, _ in self._ready[sender]) + len(data)
            for sender, data in self._pending.items()
        }

    def _read_run(self, sender: Sender) -> bool:
        """Read messages natively, up to the first that may change the state. Return whether there are any."""
        state = (self.version, sender, self.block, *self._facts.values())
        run = self._runs.get(state) or self._run(sender, state)
        if run.read is None or not run.tags:
            return False
        pending = self._pending[sender]
        messages, size = run.read(pending, run.tags, run.frame, self.most, self.encoding, *run.arguments)
        del pending[:size]
        self._ready[sender].extend(messages)
        return size > 0

    def _run(self, sender: Sender, state: _State) -> _StatelessMessages:
        read = self.readers.get((self.version, sender))
        frames = {} if read is None else dict(self._native_frames(sender))
        frame = next(iter(frames.values()), (0, 0, False))
        tags = bytes(first for first, own_frame in frames.items() if own_frame == frame)
        read_run = None if read is None else read.__self__.read_run  # type: ignore[attr-defined]
        run = self._runs[state] = _StatelessMessages(read_run, tags, frame, self._read_arguments())
        return run

    def _native_frames(self, sender: Sender) -> Iterator[tuple[int, _NativeFrame]]:
        """Yield the first byte and the frame of each message that is in place here and does not change the state."""
        for layout in self.layouts.messages:
            if layout.tag and layout.sender in (sender, "both") and layout.since <= self.version:
                state = self._state(ord(layout.tag), sender)
                entry = self._entry(layout.tag.encode("latin-1"), sender, state)
                is_in_place = not entry.places or self.block in entry.places
                _, offset, measure, _ = self._frame(ord(layout.tag), sender, state)
                is_stateless = state in self._entries and is_in_place and not entry.has_effects
                if is_stateless and measure is not None and measure.order == "big":
                    yield ord(layout.tag), (offset, measure.width, measure.signed)

    def _apply(self, layout: MessageLayout, message: object) -> None:
        super()._apply(layout, message)
        # Messages that were read in the previous state are read again.
        for sender, ready in self._ready.items():
            if ready:
                self._pending[sender][:0] = b"".join(whole for whole, _ in ready)
                ready.clear()

    def _frame(self, first: int, sender: Sender, state: _State) -> _Frame:
        layout = self._awaited(first, sender)
        if layout is None:
            # `parse` raises an error that lists the legal tags.
            self._parse(self.version, bytes((first,)), sender)
            raise AssertionError(f"a message without a layout: {first:02x}")
        offset, measure = 0, None
        for operation in of_version(layout.operations, self.version):
            assert isinstance(operation, Integer)
            if (isinstance(operation, Measure) and not operation.of) or (
                isinstance(operation, Constant) and operation.is_length
            ):
                measure = operation
                break
            offset += operation.width
        name = layout.name if layout.tag else "message"
        frame = self._frames[state] = _Frame(name, offset, measure, _length_format(measure).unpack_from)
        return frame

    def _awaited(self, first: int, sender: Sender) -> MessageLayout | None:
        """Return a layout that may begin with a byte: any expected message without a tag, as all begin alike."""
        messages = [
            message
            for message in self.layouts.messages
            if message.sender in (sender, "both") and message.since <= self.version
        ]
        for message in messages:
            is_awaited = bool(message.when) and self.facts[message.when[0]] == message.when[1]
            if not message.tag and is_awaited:
                row = of_version(message.operations, self.version)[0]
                if not isinstance(row, Take) or row.width > 1 or not row.allowed or first in row.allowed:
                    return message
        return next((message for message in messages if message.tag == chr(first)), None)


def _length_format(measure: Integer | None) -> Format:
    if measure is None:
        return Format("")
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[measure.width]
    return Format((">" if measure.order == "big" else "<") + (letter if measure.signed else letter.upper()))
