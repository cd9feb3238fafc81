"""Readers are interrupted at every message of a capture, and captures come from servers that were interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from logicalrep import Decoder, Lsn
from logicalrep.captures.capture import Capture
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_row, message_row
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision, NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep_protocol.versions import AnyMessage, Delete, Insert, Message, Relation, Truncate, Type, Update
from tests.protocol.captured import collected, selected
from tests.transactions.captured import find, name
from tests.transactions.replay import Tables, compare, is_complete, replayable
from tests.transactions.truth import Assembled, assembled

Told = list[Any]


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
                sent.described = [each for oid in message.relation_ids for each in _described(relations, stream, oid)]
            yield sent

    def send(self, start: int) -> Iterator[tuple[Lsn, bytes]]:
        """Yield the messages on a new connection."""
        known: dict[tuple[int | None, int], bytes] = {}
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
                yield from self._describe(description, stream, getattr(facts, "xid", None), known)
            if isinstance(sent.message, Relation):
                known[stream, sent.message.relation_id] = sent.message.build(encoding=self.session.encoding)
            yield sent.lsn, sent.message.build(encoding=self.session.encoding)

    def _describe(
        self, description: Any, stream: int | None, xid: int | None, known: dict[tuple[int | None, int], bytes]
    ) -> Iterator[tuple[Lsn, bytes]]:
        if hasattr(description, "xid"):
            description = replace(description, xid=xid)
        data: bytes = description.build(encoding=self.session.encoding)
        key = (stream, description.relation_id if isinstance(description, Relation) else -description.type_id)
        if key not in known:
            known[key] = data
            yield Lsn(0), data

    def decoder(self) -> Decoder:
        return self.session.decoder()


def _described(
    relations: dict[tuple[int | None, int], list[AnyMessage]], stream: int | None, oid: int
) -> list[AnyMessage]:
    return relations.get((stream, oid)) or relations[None, oid]


def told(assembler: Assembler, lsn: Lsn, message: AnyMessage, encoding: str) -> Told:
    """Return the events from one message as plain data."""
    result: Told = []
    for event in assembler.feed(message, lsn):
        if isinstance(event, Transaction | PreparedTransaction):
            with event:
                rows = [change_row(change, event, encoding=encoding) for change in event.changes]
            # Relations are not repeated at the same places, so schema changes are left out here.
            result.append((type(event).__name__, event.xid, event.gid, event.end_lsn, rows))
        elif isinstance(event, NonTransactionalMessage):
            result.append(message_row(event, encoding=encoding))
        else:
            assert isinstance(event, Decision)
            assert event.known
            result.append(event)
    return result


def check_every_boundary(path: Path, *, hand_on_prepared: bool) -> None:
    """Check that a reader killed after any message, and resumed at its position, reads the rest exactly once."""
    server = CapturedServer(path)
    encoding = server.session.encoding
    whole: Told = []
    boundaries: list[tuple[int, ResumeToken]] = [(0, ResumeToken())]
    decoder = server.decoder()
    with Assembler(hand_on_prepared=hand_on_prepared) as assembler:
        for lsn, data in server.send(0):
            whole += told(assembler, lsn, decoder.decode(data), encoding)
            position = assembler.position
            boundaries.append((len(whole), position))
    previous = None
    for count, position in boundaries:
        if (count, position) == previous:
            # Half a transaction is not part of a position: resuming here equals resuming there.
            continue
        previous = (count, position)
        for start in (position.acknowledged, 0):
            rest: Told = []
            decoder = server.decoder()
            with Assembler(hand_on_prepared=hand_on_prepared, after=position) as assembler:
                for lsn, data in server.send(start):
                    rest += told(assembler, lsn, decoder.decode(data), encoding)
            assert whole[:count] + rest == whole


def check_reconnecting(path: Path) -> None:
    """Check the same with an assembler that lives on and still holds half a transaction."""
    server = CapturedServer(path)
    encoding = server.session.encoding
    messages = list(server.send(0))
    decoder = server.decoder()
    with Assembler() as assembler:
        whole = [each for lsn, data in messages for each in told(assembler, lsn, decoder.decode(data), encoding)]
    for cut in range(0, len(messages), 13):
        decoder = server.decoder()
        with Assembler() as assembler:
            out = [
                each for lsn, data in messages[:cut] for each in told(assembler, lsn, decoder.decode(data), encoding)
            ]
            assembler.reconnect()
            decoder = server.decoder()
            for lsn, data in server.send(assembler.position.acknowledged):
                out += told(assembler, lsn, decoder.decode(data), encoding)
        assert out == whole


SMALL = [
    "pg18/twophase/v4-live.walsender.jsonl.gz",
    "pg16/stream_imm/v4-late.sql.jsonl.gz",
    "pg15/messages/v1-bin-msg.walsender.jsonl.gz",
]


@pytest.mark.parametrize("hand_on_prepared", [False, True])
@pytest.mark.parametrize("relative", SMALL)
def test_killed_at_every_message(relative: str, hand_on_prepared: bool) -> None:
    check_every_boundary(find(relative), hand_on_prepared=hand_on_prepared)


@pytest.mark.parametrize("relative", SMALL)
def test_reconnecting_at_many_messages(relative: str) -> None:
    check_reconnecting(find(relative))


@pytest.mark.thorough
@pytest.mark.parametrize("hand_on_prepared", [False, True])
def test_killed_at_every_message_of_many_captures(hand_on_prepared: bool) -> None:
    for path in collected():
        if path.parent.name in ("twophase", "stream_imm", "stream", "crash", "messages", "origin") and (
            path.parent.parent.name in ("pg14", "pg18")
        ):
            check_every_boundary(path, hand_on_prepared=hand_on_prepared)


def restarts() -> list[Path]:
    """Return the first parts of captures whose connection was lost."""
    return [path for path in collected() if ".part1." in path.name]


@pytest.mark.thorough
@pytest.mark.parametrize("lives_on", [False, True])
@pytest.mark.parametrize("hand_on_prepared", [False, True])
def test_connections_that_were_lost(lives_on: bool, hand_on_prepared: bool) -> None:
    assert restarts()
    for first in restarts():
        second = first.with_name(first.name.replace(".part1.", ".part2."))
        assembler = Assembler(hand_on_prepared=hand_on_prepared)
        out = assembled(first, assembler)
        if lives_on:
            assembler.reconnect()
        else:
            position = assembler.position
            assembler.close()
            assembler = Assembler(hand_on_prepared=hand_on_prepared, after=position)
        out += assembled(second, assembler)
        assembler.close()
        tables = Tables(replayable(first))
        prepared = {}
        for each in out:
            if isinstance(each, Assembled):
                if isinstance(each.transaction, PreparedTransaction):
                    prepared[each.transaction.gid] = each
                else:
                    tables.apply(each.changes)
            elif isinstance(each, Decision):
                assert each.known
                decided = prepared.pop(each.gid)
                if each.committed:
                    tables.apply(decided.changes)
        assert compare(tables, first)


def test_the_selection_has_complete_captures() -> None:
    assert any(is_complete(path) for path in selected()), [name(path) for path in selected()]
