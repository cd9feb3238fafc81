"""Runs of rows equal the rows one by one, up to the first invalid one."""

from __future__ import annotations

from typing import Any

import pytest

from logicalrep import DecodeError, Decoder, TransactionId, v1, v2
from logicalrep.arrow.batch_intake import BatchIntake
from logicalrep.arrow.message_batch import MessageBatch, message_batch_of
from logicalrep.arrow.packed_rows import rows_from
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.relations import Relations, TableDescription
from logicalrep_protocol.columnar import Session
from logicalrep_protocol.versions import AnyMessage
from tests.transactions.wire import TABLE, begin, insert, relation, row, start, streamed_insert, streamed_relation

STREAM = Session(version=2, streaming=True)


def table(*names: str) -> TableDescription:
    relations = Relations()
    relations.describe(relation(*names), None)
    description = relations.find(TABLE, None)
    assert description is not None
    return description


def of(*messages: AnyMessage | bytes) -> MessageBatch:
    """Return a batch of these messages, whose LSNs count from 1."""
    return message_batch_of(
        [(lsn, data if isinstance(data, bytes) else data.build()) for lsn, data in enumerate(messages, 1)]
    )


def test_rows_lose_their_xid_and_nothing_else() -> None:
    batch = of(start(7, first=True), *(streamed_insert(xid, str(xid), "v" * xid) for xid in (7, 7, 9, 8, 8)))
    rows = rows_from(batch, 1, STREAM)
    assert rows is not None
    description = table("id", "v")
    expected = [(lsn, insert(str(xid), "v" * xid).build(), description) for lsn, xid in enumerate((7, 7, 9, 8, 8), 2)]
    assert list(rows.bound(lambda _: description)) == expected
    assert list(rows.bound(lambda _: description)[2:4]) == expected[2:4]
    assert list(rows.subtransactions(5)) == [(0, 7), (2, 9), (3, 8)]
    assert list(rows.subtransactions(3)) == [(0, 7), (2, 9)]
    assert rows.bound(lambda _: description).memory > sum(len(data) for _, data, _ in expected)


def test_rows_outside_of_streams_are_as_they_came() -> None:
    messages: list[AnyMessage] = [
        insert("1", oid=20),
        insert("2", oid=10),
        v1.Delete(relation_id=TABLE, old_kind="K", old=row("1")),
        insert("3", oid=20),
    ]
    rows = rows_from(of(*messages, begin(1, 1), insert("4")), 0, Session(version=1))
    assert rows is not None
    assert [data for _, data in rows.batch] == [message.build() for message in messages]
    assert list(rows.subtransactions(4)) == []
    description = table("id")
    assert rows.bound(lambda _: description).tables() == [(0, 20), (1, 10), (2, TABLE)]


def test_large_xids_and_oids_are_read_like_small_ones() -> None:
    """Both count to 2^32."""
    large, oid = (1 << 32) - 2, (1 << 31) + 5
    batch = of(streamed_insert(large, "1", oid=oid), streamed_insert(large - 1, "2", oid=oid))
    rows = rows_from(batch, 0, STREAM)
    assert rows is not None
    assert list(rows.subtransactions(2)) == [(0, large), (1, large - 1)]
    description = table("id")
    assert rows.bound(lambda relation_id: description if relation_id == oid else None).tables() == [(0, oid)]


def test_chunks_have_so_many_bytes_or_one_row() -> None:
    arrived = rows_from(of(*(insert("x" * size) for size in (1, 2, 500, 3, 4, 5))), 0, Session(version=1))
    assert arrived is not None
    rows = arrived.bound(lambda _: table("id"))
    for size in (1, 30, 60, 10_000):
        chunks = list(rows.chunks(size))
        assert [data for chunk in chunks for _, data in chunk.batch] == [data for _, data in rows.batch]
        assert all(chunk.batch.size <= size or len(chunk) == 1 for chunk in chunks)
    assert len(list(rows.chunks(10_000))) == 1


@pytest.mark.parametrize("at", [0, 1, 5])
@pytest.mark.parametrize(
    "wrong",
    [
        b"I",
        b"I\0\0\0\7\0\0",
        streamed_insert(7, "1", "2").build()[:-1],
        streamed_insert(7, "1", "2").build() + b"\0",
        streamed_insert(7, "1"),
        streamed_insert(7, "1", "2", "3"),
        streamed_insert(7, "1", "2", oid=5),
        v2.Update(xid=TransactionId(7), relation_id=TABLE, old_kind="K", old=row("1"), new=row("1", "2")),
        v2.Update(xid=TransactionId(7), relation_id=TABLE, old_kind="O", old=row("1", "2"), new=row("1")),
        v2.Delete(xid=TransactionId(7), relation_id=TABLE, old_kind="K", old=row("1", "2", "3")),
    ],
)
def test_a_row_that_cannot_come_is_the_same_error_as_alone(wrong: AnyMessage | bytes, at: int) -> None:
    """The rows before it are taken."""
    good = [streamed_insert(7, str(number), "v") for number in range(40)]
    batch = of(*good[:at], wrong, *good)
    rows = rows_from(batch, 0, STREAM)
    description = table("id", "v")
    fitting = 0 if rows is None else len(rows.bound(lambda oid: description if oid == TABLE else None))
    assert fitting == at

    def error(intake: Intake[Any]) -> tuple[type, str]:
        intake.connect(Decoder(2))
        list(intake.take(list(of(start(7, first=True), streamed_relation(7, "id", "v")))))
        with pytest.raises((DecodeError, TransactionError)) as raised:
            list(intake.take(list(batch)))
        return raised.type, str(raised.value)

    with Assembler() as one_by_one, Assembler() as together:
        assert error(BatchIntake(together, 1 << 20)) == error(Intake(one_by_one))
        assert len(together.streams[TransactionId(7)].log) == at


def test_the_rows_of_updates_and_deletes_are_counted() -> None:
    description = table("id", "v")
    messages: list[AnyMessage] = [
        v1.Update(relation_id=TABLE, old_kind=None, old=None, new=row("1", "2")),
        v1.Update(relation_id=TABLE, old_kind="K", old=row("1", None), new=row("2", "2")),
        v1.Update(relation_id=TABLE, old_kind="O", old=row("1", "1"), new=row("2", "2")),
        v1.Delete(relation_id=TABLE, old_kind="O", old=row("1", "1")),
        v1.Delete(relation_id=TABLE, old_kind="K", old=row("1", None)),
    ]
    rows = rows_from(of(*messages), 0, Session(version=1))
    assert rows is not None
    assert len(rows.bound(lambda _: description)) == len(messages)
