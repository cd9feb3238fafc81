"""Layouts as data: messages and parts with the operations that read them, for a walk field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from logicalrep_runtime.operations import Constant, Integer, Operations, Take, flat

OUTSIDE = "outside"
"""The place of messages that stand between blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLayout:
    """The layout of a part: its fields, or alternatives told apart by the tag that each begins with."""

    name: str
    since: int = 1
    """The protocol version that brought an alternative."""
    operations: Operations = ()
    alternatives: tuple[PartLayout, ...] = ()
    doc: str = ""

    @property
    def fields(self) -> Operations:
        """The rows of the documentation's table."""
        return tuple(flat(self.operations))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLayout:
    """The layout of a message in the newest version, where the message may stand, and what it changes."""

    name: str
    tag: str
    since: int
    """The protocol version that brought it."""
    also_since: int = 0
    """The version before `since` from which on servers send it all the same; 0 if they do not."""
    also_when: str = ""
    """The session fact without which they do not."""
    sender: Literal["server", "client", "both"]
    reference: str
    """The address of its table in the documentation."""
    callbacks: tuple[str, ...] = ()
    """The output plugin's callbacks that send it."""
    places: tuple[str, ...] = ()
    """The blocks that it may stand in, `outside` for between them; () for anywhere. Of a message that both sides send,
    it is where the server may, and the server's alone opens and closes blocks."""
    opens: str = ""
    """The block that it opens."""
    closes: tuple[str, ...] = ()
    """The blocks of which it closes the one that is open."""
    when: Sequence[str] = ()
    """The session fact, and its value, without which it is another message with the same tag; () for always."""
    sets: str = ""
    """The session fact that is true from here on, or that has a value: `expected = password`."""
    tells_encoding: tuple[str, ...] = ()
    """The field that names a setting, the setting that is the session's encoding, and the field with its value."""
    carries: str = ""
    """The protocol whose message the last field is, in a session that replicates."""
    clears: str = ""
    """The session fact that is false from here on."""
    describes: str = ""
    """The field with the number of what it describes, by which later messages refer to it."""
    transaction: str = ""
    """The effect on its transaction: begins, streams, commits, prepares, aborts it; empty for nothing."""
    described_as: str = "something"
    """The field's thing in a sentence: `a table`."""
    looks_up: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The fields with numbers of what other messages have described, and these messages' names."""
    operations: Operations
    doc: str = ""

    @property
    def fields(self) -> Operations:
        """The rows of the documentation's table."""
        return tuple(flat(self.operations))

    def looking_up(self, version: int) -> list[str]:
        """The fields of a version with numbers of what other messages have described."""
        return [row.name for row in self.fields if row.name in self.looks_up and row.since <= version]

    def comes_in(self, version: int, facts: Mapping[str, bool]) -> bool:
        """Whether servers send it to clients of the version in a session where these facts hold."""
        is_also = 0 < self.also_since <= version and (not self.also_when or facts.get(self.also_when, False))
        return self.since <= version or is_also


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolLayout:
    """All layouts of a protocol."""

    name: str
    versions: tuple[int, ...]
    version_names: Mapping[int, str] = field(default_factory=dict, hash=False)
    """What people call its versions, `3.2`, where that is not their numbers."""
    outside: str = "outside of all blocks"
    """The place between blocks in a sentence."""
    session: Mapping[str, str]
    """The session facts, each with its meaning."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The values of the session facts that have some, the first one at the start."""
    encodings: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The codecs of Python by the names that messages have for encodings."""
    kept: tuple[str, ...]
    """The session facts that messages set and clear; a decoder has to be told the others."""
    parse_arguments: tuple[str, ...]
    """The arguments of `parse`: the session facts that layouts depend on, and the encoding of texts."""
    messages: tuple[MessageLayout, ...]
    parts: Mapping[str, PartLayout]

    def called(self, version: int) -> str:
        """Return what people call a version."""
        return self.version_names.get(version, str(version))

    def message(self, tag: int, sender: str = "server") -> MessageLayout | None:
        """Return the message that begins with that byte; None if there is none."""
        for message in self.messages:
            if message.tag == chr(tag) and message.sender in (sender, "both"):
                return message
        return None

    def find(self, data: bytes, version: int, sender: str, facts: Mapping[str, Any]) -> MessageLayout | None:
        """Return the message that some bytes begin; None if there is none.

        Of several with one tag, or without any, what the session waits for tells which, or a constant at its place.
        """
        candidates = [
            message
            for message in self.messages
            if message.sender in (sender, "both")
            and message.tag in ("", chr(data[0]))
            and (not message.when or self._value(facts, message.when[0]) == message.when[1])
        ]
        for message in sorted(candidates, key=lambda candidate: candidate.tag != ""):
            if self._begins(message, data, version):
                return message
        return next((message for message in candidates if message.tag), None)

    def _value(self, facts: Mapping[str, Any], name: str) -> Any:
        """The value of a session fact, the one at the start if it is not given."""
        return facts.get(name, self.values[name][0])

    def _begins(self, message: MessageLayout, data: bytes, version: int) -> bool:
        """Whether the constants at the beginning of a message are those of some bytes."""
        offset = 0
        for operation in message.operations:
            if operation.since > version or 0 < operation.until < version:
                continue
            if not isinstance(operation, Integer):
                break
            code = int.from_bytes(data[offset : offset + operation.width], operation.order, signed=operation.signed)
            if isinstance(operation, Constant) and code != operation.code and not operation.is_length:
                return False
            if isinstance(operation, Take) and operation.allowed and offset == 0 and code not in operation.allowed:
                return False
            offset += operation.width
        return True
