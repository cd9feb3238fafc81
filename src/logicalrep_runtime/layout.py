"""Layouts as data: messages and parts with the operations that read them, for a walk field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from logicalrep_runtime.operations import Operations, flat


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
    sender: Literal["server", "client"]
    reference: str
    """The address of its table in the documentation."""
    callbacks: tuple[str, ...] = ()
    """The output plugin's callbacks that send it."""
    places: tuple[str, ...] = ()
    """The blocks that it may stand in; `outside` means between them."""
    opens: str = ""
    """The block that it opens."""
    closes: str = ""
    """The block that it closes."""
    sets: str = ""
    """The session fact that is true from here on."""
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

    def comes_in(self, version: int, facts: Mapping[str, bool]) -> bool:
        """Whether servers send it to clients of the version in a session where these facts hold."""
        is_also = 0 < self.also_since <= version and (not self.also_when or facts.get(self.also_when, False))
        return self.since <= version or is_also


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolLayout:
    """All layouts of a protocol."""

    name: str
    versions: tuple[int, ...]
    outside: str = "outside of all blocks"
    """The place between blocks in a sentence."""
    session: Mapping[str, str]
    """The session facts, each with its meaning."""
    kept: tuple[str, ...]
    """The session facts that messages set and clear; a decoder has to be told the others."""
    parse_arguments: tuple[str, ...]
    """The arguments of `parse`: the session facts that layouts depend on, and the encoding of texts."""
    messages: tuple[MessageLayout, ...]
    parts: Mapping[str, PartLayout]

    def message(self, tag: int, sender: str = "server") -> MessageLayout | None:
        """Return the message that begins with that byte; None if there is none."""
        for message in self.messages:
            if ord(message.tag) == tag and message.sender == sender:
                return message
        return None
