"""Assembled transactions are handed on as messages, many small ones together, and never past what was handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from logicalrep import DecodeError, Decoder, Lsn, Oid, TimestampTz, TransactionId, v3
from logicalrep.arrow import feed_form
from logicalrep.arrow.batch_intake import WholeTransactions
from logicalrep.arrow.committing import Committing
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Decision
from logicalrep_protocol.versions import AnyMessage
from tests.transactions.wire import TABLE, begin, commit, insert, message, relation


def _prepared(number: int) -> list[AnyMessage]:
    """Return a transaction of one row that is prepared and committed at 100 times its number."""
    position, xid, gid = 100 * number, TransactionId(number), f"g{number}"
    facts: dict[str, Any] = {"prepare_lsn": Lsn(position - 50), "xid": xid, "gid": gid}
    described = [relation("id")] if number == 1 else []
    prepare = {"end_lsn": Lsn(position - 42), "prepare_timestamp": TimestampTz(0)}
    return [
        v3.BeginPrepare(**prepare, **facts),
        *described,
        insert(str(number)),
        v3.Prepare(**prepare, **facts),
        _decision(number),
    ]


def _decision(number: int) -> v3.CommitPrepared:
    return v3.CommitPrepared(
        commit_lsn=Lsn(100 * number),
        end_lsn=Lsn(100 * number + 8),
        commit_timestamp=TimestampTz(0),
        xid=TransactionId(number),
        gid=f"g{number}",
    )


def _built(messages: Sequence[AnyMessage]) -> list[tuple[int, bytes]]:
    return [(5, message.build()) for message in messages]


@pytest.fixture
def committing() -> Any:
    with Assembler() as assembler:
        fresh = Committing(feed_form(), assembler)
        fresh.intake.connect(Decoder(3, two_phase=True))
        yield fresh


def test_small_prepared_transactions_are_one_record_batch(committing: Committing) -> None:
    messages = [message for number in range(1, 11) for message in _prepared(number)]
    [event] = committing.intake.take(_built(messages))
    committed = committing.committed(event)
    [rows] = committed.rows
    assert rows.batch["gid"].to_pylist() == [f"g{number}" for number in range(1, 11)]
    assert rows.batch["commit_lsn"].to_pylist() == rows.positions.tolist() == list(range(100, 1001, 100))
    assert committed.ends.tolist() == list(range(108, 1009, 100))
    assert min(committed.sizes) > 0


def test_the_position_is_before_a_decision_that_is_not_handed_on(committing: Committing) -> None:
    """A reader that keeps the position after the transactions meets the decision again, whose rows are missing."""
    positions = []
    for event in committing.intake.take(_built([*_prepared(1), *_prepared(2), _decision(3)])):
        positions.append((type(event), committing.intake.position.delivered))
    assert positions == [(WholeTransactions, 208), (Decision, 308)]


def test_transactions_before_an_error_are_handed_on(committing: Committing) -> None:
    events = committing.intake.take([*_built(_prepared(1)), (5, b"K")])
    assert isinstance(next(events), WholeTransactions)
    assert committing.intake.position.delivered == 108
    with pytest.raises(DecodeError):
        next(events)


def test_transactions_with_large_rows_are_not_joined(committing: Committing) -> None:
    """The memory that waits to be handed on is bounded."""
    large = "x" * 700_000
    messages = []
    for number in range(1, 5):
        whole = _prepared(number)
        whole[-3] = insert(large)
        messages += whole
    events = list(committing.intake.take(_built(messages)))
    assert [len(event.positions) for event in events if isinstance(event, WholeTransactions)] == [2, 2]


def test_a_message_outside_of_transactions_has_its_own_place(committing: Committing) -> None:
    alone = message(b"note", lsn=150, transactional=False)
    [event] = committing.intake.take(_built([*_prepared(1), alone, *_prepared(2)]))
    [*rows] = committing.committed(event).rows
    assert [batch.batch["op"].to_pylist() for batch in rows] == [["insert"], ["message"], ["insert"]]
    assert [batch.positions.tolist() for batch in rows] == [[100], [149], [200]]
    assert rows[1].batch.to_pylist()[0]["commit_lsn"] is None


def test_descriptions_of_transactions_that_pass_whole_apply_to_those_that_are_assembled(
    committing: Committing,
) -> None:
    whole: list[AnyMessage] = [begin(1, 50), relation("id", name="described"), insert("0"), commit(50)]
    events = list(committing.intake.take(_built([*whole, *_prepared(2)])))
    rows = [row for event in events for batch in committing.committed(event).batches for row in batch.to_pylist()]
    assert [(row["table"], row["relation_id"]) for row in rows] == [("described", Oid(TABLE))] * 2
