"""Readers are interrupted at every message of a capture, and captures come from servers that were interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_row, message_row
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision, NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep_protocol.versions import AnyMessage
from tests.protocol.captured import collected, selected
from tests.transactions.captured import find, name
from tests.transactions.captured_server import CapturedServer
from tests.transactions.replay import Tables, compare, is_complete, replayable
from tests.transactions.truth import Assembled, assembled

Told = list[Any]


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
        whole = [output for lsn, data in messages for output in told(assembler, lsn, decoder.decode(data), encoding)]
    for cut in range(0, len(messages), 13):
        decoder = server.decoder()
        with Assembler() as assembler:
            out = [
                output
                for lsn, data in messages[:cut]
                for output in told(assembler, lsn, decoder.decode(data), encoding)
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


@pytest.mark.slow
@pytest.mark.parametrize("hand_on_prepared", [False, True])
@pytest.mark.parametrize("relative", SMALL)
def test_killed_at_every_message(relative: str, hand_on_prepared: bool) -> None:
    check_every_boundary(find(relative), hand_on_prepared=hand_on_prepared)


@pytest.mark.slow
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
        for event in out:
            if isinstance(event, Assembled):
                if isinstance(event.transaction, PreparedTransaction):
                    prepared[event.transaction.gid] = event
                else:
                    tables.apply(event.changes)
            elif isinstance(event, Decision):
                assert event.known
                decided = prepared.pop(event.gid)
                if event.committed:
                    tables.apply(decided.changes)
        assert compare(tables, first)


def test_the_selection_has_complete_captures() -> None:
    assert any(is_complete(path) for path in selected()), [name(path) for path in selected()]
