"""A server that sends a capture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from logicalrep import Decoder, Lsn
from logicalrep.captures.capture import Capture
from logicalrep_protocol.versions import AnyMessage, Delete, Insert, Message, Relation, Truncate, Type, Update


@dataclass
class Unit:
    """The unit that a server repeats as a whole or not at all: a transaction, decision or non-transactional message."""

    effect: int = 0
    """The position in the log at which it took effect, which a server compares with the acknowledged position."""


@dataclass
class Sent:
    """A message of a capture, its unit, and the table descriptions that hold for it."""

    lsn: Lsn
    message: AnyMessage
    unit: Unit
    described: list[AnyMessage] = field(default_factory=list)


class CapturedServer:
    """Sends a capture from any position as a server would: whole units, with each table described anew."""

    def __init__(self, path: Path) -> None:
        with Capture.open(path) as capture:
            self.session = capture.session
            decoder = self.session.decoder()
            self.messages = list(self._units((lsn, decoder.decode(data)) for lsn, data in capture))

    def _units(self, messages: Iterator[tuple[Lsn, AnyMessage]]) -> Iterator[Sent]:
        open_unit: Unit | None = None
        streams: dict[int, Unit] = {}
        relations: dict[tuple[int | None, int], list[AnyMessage]] = {}
        types: list[AnyMessage] = []
        stream: int | None = None
        for lsn, message in messages:
            unit = open_unit or Unit()
            facts: Any = message
            if message.tag in "Bb":
                open_unit = unit = Unit(facts.final_lsn if message.tag == "B" else facts.prepare_lsn)
            elif message.tag in "CP":
                open_unit = None
            elif message.tag == "S":
                stream = facts.xid
                if facts.first_segment:
                    streams[facts.xid] = Unit()
                open_unit = unit = streams[facts.xid]
            elif message.tag == "E":
                stream = open_unit = None
            elif message.tag in "cp":
                unit = streams[facts.xid]
                unit.effect = facts.commit_lsn if message.tag == "c" else facts.prepare_lsn
                if message.tag == "c":
                    for (scope, oid), described in list(relations.items()):
                        if scope == facts.xid:
                            relations[None, oid] = described
            elif message.tag == "A":
                unit = streams.get(facts.xid, unit)
                if facts.subxid == facts.xid:
                    # The transaction was rolled back or lost in a crash: the server may or may not stream it.
                    unit.effect = 1 << 64
            elif message.tag == "K":
                unit.effect = facts.commit_lsn
            elif message.tag == "r":
                unit.effect = facts.rollback_end_lsn - 1
            elif isinstance(message, Message) and not message.transactional:
                # The LSN is the end of its record.
                unit = Unit(message.message_lsn - 1)
            sent = Sent(lsn, message, unit)
            if isinstance(message, Type):
                types.append(message)
            elif isinstance(message, Relation):
                relations[stream, message.relation_id] = [*types, message]
                types = []
            elif isinstance(message, Insert | Update | Delete):
                sent.described = _described(relations, stream, message.relation_id)
            elif isinstance(message, Truncate):
                sent.described = [
                    description for oid in message.relation_ids for description in _described(relations, stream, oid)
                ]
            yield sent

    def send(self, start: int) -> Iterator[tuple[Lsn, bytes]]:
        """Yield the messages on a new connection."""
        descriptions: dict[tuple[int | None, int], bytes] = {}
        stream: int | None = None
        for sent in self.messages:
            facts: Any = sent.message
            if sent.unit.effect < start:
                continue
            if sent.message.tag == "S":
                stream = facts.xid
            elif sent.message.tag == "E":
                stream = None
            for description in sent.described:
                yield from self._describe(description, stream, getattr(facts, "xid", None), descriptions)
            if isinstance(sent.message, Relation):
                descriptions[stream, sent.message.relation_id] = sent.message.build(encoding=self.session.encoding)
            yield sent.lsn, sent.message.build(encoding=self.session.encoding)

    def _describe(
        self, description: Any, stream: int | None, xid: int | None, descriptions: dict[tuple[int | None, int], bytes]
    ) -> Iterator[tuple[Lsn, bytes]]:
        if hasattr(description, "xid"):
            description = replace(description, xid=xid)
        data: bytes = description.build(encoding=self.session.encoding)
        key = (stream, description.relation_id if isinstance(description, Relation) else -description.type_id)
        if key not in descriptions:
            descriptions[key] = data
            yield Lsn(0), data

    def decoder(self) -> Decoder:
        return self.session.decoder()


def _described(
    relations: dict[tuple[int | None, int], list[AnyMessage]], stream: int | None, oid: int
) -> list[AnyMessage]:
    return relations.get((stream, oid)) or relations[None, oid]
