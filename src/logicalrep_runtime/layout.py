"""Layouts as data: messages and parts with their operations, for a walk field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from logicalrep_runtime.operations import Constant, Integer, Operations, Take, flat

OUTSIDE = "outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLayout:
    """The layout of a part: its fields, or alternatives that each begin with a tag."""

    name: str
    since: int = 1
    operations: Operations = ()
    alternatives: tuple[PartLayout, ...] = ()
    doc: str = ""

    @property
    def fields(self) -> Operations:
        return tuple(flat(self.operations))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLayout:
    """The layout of a message in the newest version, its legal places, and its effects on the session."""

    name: str
    tag: str
    since: int
    also_since: int = 0
    """The version before `since` from which on servers send the message nevertheless; 0 if they do not."""
    also_when: str = ""
    sender: Literal["server", "client", "both"]
    reference: str
    callbacks: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """The legal blocks, `outside` between blocks; () for anywhere. For a message of both sides, the server's."""
    opens: str = ""
    closes: tuple[str, ...] = ()
    when: Sequence[str] = ()
    """The session fact and its value that distinguish messages with the same tag; () for always."""
    sets: str = ""
    tells_encoding: tuple[str, ...] = ()
    """The field that names a setting, the setting for the session's encoding, and the field with its value."""
    carries: tuple[str, ...] = ()
    """The protocols of the message in the last field, in a replication session: the first with such a message."""
    clears: str = ""
    describes: str = ""
    """The field with the number of the described object; later messages refer to the object by the number."""
    transaction: str = ""
    """The effect on the transaction: begins, streams, commits, prepares, aborts; empty for none."""
    described_as: str = "something"
    """The described object in a sentence: `a table`."""
    looks_up: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The fields that refer to described objects by number, and the names of the describing messages."""
    operations: Operations
    doc: str = ""

    @property
    def fields(self) -> Operations:
        return tuple(flat(self.operations))

    @property
    def class_name(self) -> str:
        return "".join(word[0].upper() + word[1:] for word in self.name.split())

    @property
    def changes(self) -> tuple[tuple[str, Any], ...]:
        """The session facts that the message sets and clears, with their new values."""
        fact, _, value = self.sets.partition(" = ")
        changes = ((fact, value or True), (self.clears, False))
        return tuple((name, new_value) for name, new_value in changes if name)

    def reference_fields(self, version: int) -> list[str]:
        rows = (row for row in self.fields if row.since <= version and not 0 < row.until < version)
        return [row.name for row in rows if row.name in self.looks_up]

    def is_sent_in(self, version: int, facts: Mapping[str, bool]) -> bool:
        """Return whether servers send the message to clients of the version in a session with these facts."""
        is_also = 0 < self.also_since <= version and (not self.also_when or facts.get(self.also_when, False))
        return self.since <= version or is_also


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolLayout:
    name: str
    versions: tuple[int, ...]
    version_names: Mapping[int, str] = field(default_factory=dict, hash=False)
    outside: str = "outside of all blocks"
    session: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The values of session facts that are not true or false, the initial value first."""
    encodings: Mapping[str, str] = field(default_factory=dict, hash=False)
    tracked: tuple[str, ...]
    """The session facts that messages set and clear. The other facts are arguments of a decoder."""
    parse_arguments: tuple[str, ...]
    """The arguments of `parse`: session facts that layouts depend on, and the encoding of texts."""
    messages: tuple[MessageLayout, ...]
    parts: Mapping[str, PartLayout]

    def version_name(self, version: int) -> str:
        return self.version_names.get(version, str(version))

    def message(self, tag: int, sender: str = "server") -> MessageLayout | None:
        for message in self.messages:
            if message.tag == chr(tag) and message.sender in (sender, "both"):
                return message
        return None

    def find(self, data: bytes, version: int, sender: str, facts: Mapping[str, Any]) -> MessageLayout | None:
        """Return the layout of a message; None for bytes that begin no message.

        Session facts, or a constant in the message, distinguish messages that share a tag.
        """
        candidates = self.candidates(data[:1], version, sender, facts)
        for message in candidates:
            if self._begins(message, data, version):
                return message
        return next((message for message in candidates if message.tag), None)

    def candidates(
        self, first: bytes, version: int, sender: str, facts: Mapping[str, Any]
    ) -> tuple[MessageLayout, ...]:
        """Return the messages that may begin with a byte in a session with these facts, in the order of `find`."""
        candidates = (
            message
            for message in self.messages
            if message.sender in (sender, "both")
            and message.tag in ("", first.decode("latin-1"))
            and (not message.when or self._value(facts, message.when[0]) == message.when[1])
            and (message.tag or message.is_sent_in(version, facts))
        )
        # `parse` may refuse a message of a later version, so such messages come last.
        return tuple(
            sorted(candidates, key=lambda message: (not message.is_sent_in(version, facts), message.tag != ""))
        )

    def _value(self, facts: Mapping[str, Any], name: str) -> Any:
        return facts.get(name, self.values[name][0])

    def _begins(self, message: MessageLayout, data: bytes, version: int) -> bool:
        """Return whether the bytes have the message's leading constants."""
        offset = 0
        for operation in message.operations:
            if operation.since > version or 0 < operation.until < version:
                continue
            if not isinstance(operation, Integer):
                break
            own = data[offset : offset + operation.width]
            code = int.from_bytes(own, operation.order, signed=operation.signed)
            is_same = len(own) == operation.width and isinstance(operation, Constant) and code == operation.code
            if isinstance(operation, Constant) and not is_same and not operation.is_length:
                return False
            legal = operation.allowed if isinstance(operation, Take) and operation.width == 1 and offset == 0 else ()
            if legal and code not in legal:
                return False
            offset += operation.width
        return True
