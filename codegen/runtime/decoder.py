"""A session's decoder: bytes in, messages out, no socket; it knows what `parse` has to be told.

What a message may follow and what it changes comes from the layouts; this file only keeps the state.
"""

from __future__ import annotations

from collections.abc import Callable

from logicalrep.errors import DecodeError
from logicalrep.layout import MessageLayout
from logicalrep.layouts import LOGICALREP
from logicalrep.scalars import Buffer, Oid
from logicalrep.versions import PARSE, AnyMessage, Delete, Insert, Relation, Truncate, Type, Update
from logicalrep.walk import walk

OUTSIDE = "outside"
"""The place of messages that stand between transactions and stream segments."""

_LAYOUTS = {layout.tag: layout for layout in LOGICALREP.messages}


class Decoder:
    """Decodes the messages of one session in the order in which they arrive.

    A new connection, and a new call of pg_logical_slot_get_binary_changes, is a new session: take a new decoder.
    A message that raises DecodeError leaves the decoder as it was.
    """

    def __init__(
        self, version: int, *, parallel: bool = False, two_phase: bool = False, encoding: str = "utf-8"
    ) -> None:
        """A decoder for a protocol version, 1 to 4; ValueError for another.

        `parallel` says whether the session was started with the option streaming = parallel.
        `two_phase` says whether the slot was created with two_phase: servers send the messages of two-phase commit to
        older protocol versions too then. `encoding` is the session's client_encoding as a Python codec.
        """
        if version not in PARSE:
            raise ValueError(f"protocol version {version} is unknown; known are {', '.join(map(str, PARSE))}")
        self.version = version
        self.parallel = parallel
        self.two_phase = two_phase
        self.encoding = encoding
        self.relations: dict[Oid, Relation] = {}
        """The last Relation of each table, by its OID."""
        self.types: dict[Oid, Type] = {}
        """The last Type of each data type, by its OID."""
        self.block = OUTSIDE
        """Where the session is: `outside`, or in a `transaction`, a `prepared transaction` or a `stream`."""
        self.streaming = False
        """Whether it is between Stream Start and Stream Stop."""
        self._parse: dict[int, Callable[..., AnyMessage]] = {}
        for layout in LOGICALREP.messages:
            if layout.since <= version:
                self._parse[ord(layout.tag)] = PARSE[version]
            elif two_phase and layout.also_when == "two_phase":
                self._parse[ord(layout.tag)] = PARSE[layout.since]

    def decode(self, data: Buffer) -> AnyMessage:
        """The next message; DecodeError if the bytes are none, or one that cannot come here."""
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        parse = self._parse.get(data[0], PARSE[self.version]) if data else PARSE[self.version]
        message = parse(data, streaming=self.streaming, parallel=self.parallel, encoding=self.encoding)
        layout = _LAYOUTS[message.tag]
        if self.block not in layout.places:
            raise self._out_of_place(layout)
        if isinstance(message, Relation):
            self.relations[message.relation_id] = message
        elif isinstance(message, Type):
            self.types[message.type_id] = message
        else:
            self._check_relations(data, layout, message)
        if layout.opens:
            self.block = layout.opens
        elif layout.closes:
            self.block = OUTSIDE
        if layout.sets == "streaming":
            self.streaming = True
        elif layout.clears == "streaming":
            self.streaming = False
        return message

    def _out_of_place(self, layout: MessageLayout) -> DecodeError:
        here = "outside of transactions and streams" if self.block == OUTSIDE else f"inside a {self.block}"
        allowed = [f"inside a {place}" for place in layout.places if place != OUTSIDE]
        if OUTSIDE in layout.places:
            allowed.insert(0, "outside of transactions and streams")
        return DecodeError(layout.name, "tag", 0, f"{layout.name} {' or '.join(allowed)}", f"it {here}")

    def _check_relations(self, data: bytes, layout: MessageLayout, message: AnyMessage) -> None:
        """A row or Truncate of a table that no Relation has described could not be read."""
        if isinstance(message, Truncate):
            paths = {f"relation_ids[{index}]": oid for index, oid in enumerate(message.relation_ids)}
        elif isinstance(message, Insert | Update | Delete):
            paths = {"relation_id": message.relation_id}
        else:
            return
        for path, oid in paths.items():
            if oid not in self.relations:
                facts = {"streaming": self.streaming, "parallel": self.parallel}
                steps = walk(LOGICALREP, self.version, data, facts=facts, encoding=self.encoding)
                offset = next(step.offset for step in steps if step.path == path)
                raise DecodeError(layout.name, path, offset, "a table that a Relation has described", f"OID {oid}")
