"""The state of a session's decoder: bytes in, messages out, no socket; it knows what `parse` has to be told.

What a message may follow and what it changes comes from the layouts, which the generated `Decoder` brings; this file
only keeps the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from logicalrep_runtime.errors import DecodeError, codec_name, unknown_argument
from logicalrep_runtime.layout import MessageLayout, ProtocolLayout
from logicalrep_runtime.layout_walk import walk
from logicalrep_runtime.scalars import Buffer, Oid

_AnyMessage = TypeVar("_AnyMessage")
_Relation = TypeVar("_Relation")
_Type = TypeVar("_Type")

OUTSIDE = "outside"
"""The place of messages that stand between transactions and stream segments."""

_SENT_TO_ALL = "Stream Abort"
"""What PostgreSQL 18 sends to sessions of version 1 as well, of transactions that it sends nothing else of."""
_SENT_ALONE = "Prepare"
"""What PostgreSQL 18 sends with nothing before it of a transaction that has no changes."""


class SessionDecoder(Generic[_AnyMessage, _Relation, _Type]):
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
        if version not in self.parsers:
            raise ValueError(f"protocol version {version} is unknown; known are {', '.join(map(str, self.parsers))}")
        codec_name(encoding)
        self.version = version
        self.encoding = encoding
        for fact in self.layouts.session:
            setattr(self, fact, given.get(fact, False))
        self.relations: dict[Oid, _Relation] = {}
        """The last Relation of each table, by its OID."""
        self.types: dict[Oid, _Type] = {}
        """The last Type of each data type, by its OID."""
        self.block = OUTSIDE
        """Where the session is: `outside`, or in a `transaction`, a `prepared transaction` or a `stream`."""
        # Bytes without a known tag: `parse` refuses them.
        self._unknown = self.parsers[version], self.layouts.messages[0]
        self._known: dict[int, tuple[Callable[..., _AnyMessage], MessageLayout]] = {}
        for layout in self.layouts.messages:
            if layout.since <= version:
                self._known[ord(layout.tag)] = self.parsers[version], layout
            elif given.get(layout.also_when) or layout.name == _SENT_TO_ALL:
                self._known[ord(layout.tag)] = self.parsers[layout.since], layout

    def decode(self, data: Buffer) -> _AnyMessage:
        """The next message; DecodeError if the bytes are none, or one that cannot come here."""
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        parse, layout = self._known.get(data[0] if data else 0, self._unknown)
        message: Any = self._read(parse, data)
        if self.block not in layout.places and not (self.block == OUTSIDE and layout.name == _SENT_ALONE):
            raise self._out_of_place(layout)
        tag = layout.tag
        if tag in "IUD":
            if message.relation_id not in self.relations:
                raise self._unknown_relation(data, layout, "relation_id", message.relation_id)
        elif tag == "R":
            self.relations[message.relation_id] = message
        elif tag == "Y":
            self.types[message.type_id] = message
        elif tag == "T":
            for index, oid in enumerate(message.relation_ids):
                if oid not in self.relations:
                    raise self._unknown_relation(data, layout, f"relation_ids[{index}]", oid)
        else:
            self._follow(layout)
        return message  # type: ignore[no-any-return]

    def _read(self, parse: Callable[..., _AnyMessage], data: bytes) -> _AnyMessage:
        """Call `parse` with the session facts that it is told; the generated class names them, which is faster."""
        raise NotImplementedError

    @property
    def facts(self) -> Mapping[str, bool]:
        """All session facts by name: whether each holds for the message that comes next."""
        return {fact: getattr(self, fact) for fact in self.layouts.session}

    def _follow(self, layout: MessageLayout) -> None:
        """Change the state as the message does."""
        if layout.opens:
            self.block = layout.opens
        elif layout.closes:
            self.block = OUTSIDE
        if layout.sets:
            setattr(self, layout.sets, True)
        if layout.clears:
            setattr(self, layout.clears, False)

    def _out_of_place(self, layout: MessageLayout) -> DecodeError:
        here = "outside of transactions and streams" if self.block == OUTSIDE else f"inside a {self.block}"
        allowed = [f"inside a {place}" for place in layout.places if place != OUTSIDE]
        if OUTSIDE in layout.places:
            allowed.insert(0, "outside of transactions and streams")
        return DecodeError(layout.name, "tag", 0, f"{layout.name} {' or '.join(allowed)}", f"it {here}")

    def _unknown_relation(self, data: bytes, layout: MessageLayout, path: str, oid: Oid) -> DecodeError:
        """A row of a table that no Relation has described could not be read."""
        steps = walk(self.layouts, self.version, data, facts=self.facts, encoding=self.encoding)
        offset = next(step.offset for step in steps if step.path == path)
        return DecodeError(layout.name, path, offset, "a table that a Relation has described", f"OID {oid}")
