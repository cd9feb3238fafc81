"""The native reader of the frontend/backend protocol: as Python on what was recorded and on damaged bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from logicalrep_protocol.pgwire import Session, v3_0, v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_runtime.errors import DecodeError
from tests.native.installed import needs_native
from tests.protocol.agreement import value_types
from tests.protocol.conversation_reading import RECORDED, Chunks, connections, decoded
from tests.protocol.damage import damaged

pytestmark = needs_native

EXPECTED = PGWIRE.values["expected"]
COPIES = 2
"""Damaged copies of each conversation."""


@contextmanager
def _in_python(module: Any) -> Iterator[None]:
    names = ("native_read_of_server", "native_read_of_client")
    readers = {name: getattr(module, name) for name in names}
    vars(module).update(dict.fromkeys(names))
    try:
        yield
    finally:
        vars(module).update(readers)


class _PythonSession(Session):
    readers: ClassVar[Mapping[Any, Any]] = {}


def _attempt(module: Any, data: bytes, **arguments: Any) -> Any:
    try:
        with _in_python(module):
            return module.parse(data, **arguments)
    except DecodeError:
        return None


def test_messages_are_read_alike_in_every_state() -> None:
    chance = random.Random(1)
    messages = {
        (whole, sender, v3_0 if session.version == 1 else v3_2): facts["expected"]
        for path in RECORDED
        for chunks in connections(path)
        for sender, whole, _, session, facts in decoded(chunks)
    }
    accepted = refused = 0
    for (whole, sender, module), state in messages.items():
        read: Any = getattr(module, f"native_read_of_{sender}")
        assert read(whole, "latin-1", state) is not None, f"Python alone reads {whole[:60]!r}"
        copies = [damaged(whole, chance) for _ in range(12)]
        for data in (whole, *copies, whole[: chance.randrange(len(whole))]):
            encoding, expected = chance.choice(("utf-8", "latin-1")), chance.choice((state, state, *EXPECTED))
            message = _attempt(module, data, sender=sender, expected=expected, encoding=encoding)
            native = read(data, encoding, expected)
            assert native == message, data.hex()
            assert value_types(native) == value_types(message)
            accepted, refused = accepted + (message is not None), refused + (message is None)
    assert min(accepted, refused) > 700


def _results(session: Session, chunks: Chunks) -> list[Any]:
    """The messages, the state after each, and the error that ends the conversation."""
    results: list[Any] = []
    try:
        for sender, data in chunks:
            for whole, message in session.receive(data, sender=sender):
                state = (session.version, session.block, session.encoding, session.facts.copy())
                results.append((whole, message, state))
    except DecodeError as error:
        results.append((error.args, dict(session.pending), session.version, session.block, session.facts))
    return results


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_sessions_follow_damaged_conversations_alike(path: Path) -> None:
    chance = random.Random(path.name)
    for chunks in connections(path):
        for number in range(1 + COPIES):
            pieces = list(chunks)
            for _ in range(number):
                index = chance.randrange(len(pieces))
                sender, data = pieces[index]
                pieces[index] = (sender, damaged(data, chance))
            with _in_python(v3_0), _in_python(v3_2):
                expected = _results(_PythonSession(), pieces)
            assert _results(Session(), pieces) == expected


def _session() -> Session:
    session = Session()
    session.facts["expected"] = "messages"
    return session


ROW = v3_2.DataRow(columns=(v3_2.ColumnValue(value=b"1"), v3_2.ColumnValue(value=None)))


def test_a_generator_that_is_left_early_loses_no_message() -> None:
    session = _session()
    sent = ROW.build() * 5
    assert next(session.receive(sent + b"D", sender="server")) == (ROW.build(), ROW)
    assert session.pending == {"server": len(sent) * 4 // 5 + 1, "client": 0}
    assert [message for _, message in session.receive(ROW.build()[1:], sender="server")] == [ROW] * 5
    assert session.pending == {"server": 0, "client": 0}


def test_a_message_that_changes_the_state_applies_to_messages_that_arrived_before() -> None:
    """As they are yielded after it: here a copy begins, so that the next row is out of place."""
    session = _session()
    received = session.receive(ROW.build() * 3, sender="server")
    next(received)
    session.decode(v3_2.CopyOutResponse(overall_format=0, column_formats=()).build(), sender="server")
    with pytest.raises(DecodeError, match="DataRow: tag at offset 0: expected DataRow outside"):
        next(received)


def test_rows_are_read_in_runs() -> None:
    session, number = _session(), 1000
    reader: Any = v3_2.native_read_of_server
    old_count = reader.__self__.accepted
    assert [message for _, message in session.receive(ROW.build() * number, sender="server")] == [ROW] * number
    assert reader.__self__.accepted == old_count + number


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        ((b"", "D", (1, 4, True), 9, "utf-8", "messages"), TypeError),
        ((b"", b"D", 1, 9, "utf-8", "messages"), TypeError),
        ((b"", b"D", (1, 4, True), 9, "utf-8"), TypeError),
        (("", b"D", (1, 4, True), 9, "utf-8", "messages"), TypeError),
        ((b"", b"D", (1, 4), 9, "utf-8", "messages"), TypeError),
        ((b"", b"D", (1, 3, True), 9, "utf-8", "messages"), ValueError),
        ((b"", b"D", (-1, 4, True), 9, "utf-8", "messages"), ValueError),
        ((b"", b"D", (1, 4, True), 0, "utf-8", "messages"), ValueError),
        ((b"", b"D", (1, 4, True), 9, b"utf-8", "messages"), ValueError),
    ],
)
def test_wrong_arguments_of_a_run_are_refused(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    reader: Any = v3_2.native_read_of_server
    with pytest.raises(error):
        reader.__self__.read_run(*arguments)


def test_the_buffer_of_a_run_cannot_change_meanwhile() -> None:
    buffer = bytearray(ROW.build() * 2)

    class Fact:
        def __eq__(self, other: object) -> bool:
            with pytest.raises(BufferError):
                buffer.clear()
            return False

        __hash__ = None  # type: ignore[assignment]

    reader: Any = v3_2.native_read_of_server
    pairs, size = reader.__self__.read_run(buffer, b"D", (1, 4, True), 99, "utf-8", Fact())
    assert (pairs, size) == ([(ROW.build(), ROW)] * 2, len(buffer))
