"""Random histories are read as the model has them, in every version, whatever way the server sends them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logicalrep import Decoder, Lsn
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.changes import Change
from logicalrep.transactions.transaction import (
    Decision,
    Event,
    NonTransactionalMessage,
    PreparedTransaction,
    Transaction,
)
from tests.transactions.history import Answer, History, Server, make_history

pytestmark = pytest.mark.slow

WAYS: list[dict[str, Any]] = [
    {"version": 1},
    {"version": 1, "two_phase": True},
    {"version": 2},
    {"version": 2, "streaming": True},
    {"version": 2, "streaming": True, "two_phase": True},
    {"version": 3, "two_phase": True},
    {"version": 3, "streaming": True, "two_phase": True},
    {"version": 4, "streaming": True},
    {"version": 4, "streaming": True, "parallel": True},
    {"version": 4, "streaming": True, "parallel": True, "two_phase": True},
]

HELD_IN_MEMORY = 64 << 20
ALL_ON_DISK = 0

Told = list[Answer | bytes]
"""Transactions with changes, and non-transactional messages, in the order of their arrival."""


def decoder(way: dict[str, Any]) -> Decoder:
    return Decoder(way["version"], parallel=way.get("parallel", False), two_phase=way.get("two_phase", False))


def read(sent: list[tuple[Lsn, bytes]], way: dict[str, Any], assembler: Assembler) -> list[Event]:
    decode = decoder(way).decode
    return [event for lsn, data in sent for event in assembler.feed(decode(data), lsn)]


def answers(change: Change) -> tuple[Any, ...]:
    """Return a change in the model's form."""
    if change.relation is None:
        message: Any = change.message
        return ("message", None, (), None, message.content, ())
    old_row, new_row = (
        None if row is None else {name: getattr(value, "value", None) for name, value in row.items()}
        for row in (change.before, change.after)
    )
    return (change.op, change.relation.relation_id, change.relation.names, old_row, new_row, change.unchanged)


def tell(events: list[Event]) -> Told:
    """Return the events in the model's form; prepared transactions where they are decided."""
    told: Told = []
    prepared: dict[str, PreparedTransaction] = {}
    for event in events:
        if isinstance(event, NonTransactionalMessage):
            told.append(event.message.content)
        elif isinstance(event, PreparedTransaction):
            assert event.gid is not None
            assert event.gid not in prepared
            prepared[event.gid] = event
        elif isinstance(event, Decision):
            assert event.known
            whole = prepared.pop(event.gid)
            assert whole.xid == event.xid
            if event.committed and len(whole.changes):
                told.append(tell_one(whole))
        elif len(event.changes):
            told.append(tell_one(event))
    return told


def tell_one(transaction: Transaction | PreparedTransaction) -> Answer:
    changes = list(transaction.changes)
    assert [change.ordinal for change in changes] == list(range(len(changes)))
    return Answer(transaction.xid, transaction.gid, transaction.origin, [answers(change) for change in changes])


def without_gids(told: Told) -> Told:
    return [
        Answer(answer.xid, None, answer.origin, answer.changes) if isinstance(answer, Answer) else answer
        for answer in told
    ]


def check_told(told: Told, history: History, way: dict[str, Any]) -> None:
    expected: Told = list(history.answers)
    if not way.get("two_phase"):
        expected = without_gids(expected)
    assert [output for output in told if isinstance(output, Answer)] == expected
    assert [output for output in told if isinstance(output, bytes)] == history.messages


@pytest.mark.parametrize("memory_limit", [HELD_IN_MEMORY, ALL_ON_DISK])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32), steps=st.integers(20, 200))
def test_all_versions_agree_with_the_model(memory_limit: int, seed: int, steps: int) -> None:
    history = make_history(Random(seed), steps)
    for way in WAYS:
        sent = Server(history, random=Random(seed + 1), **way).run()
        with Assembler(memory_limit=memory_limit) as assembler:
            told = tell(read(sent, way, assembler))
        check_told(told, history, way)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32), steps=st.integers(20, 200))
def test_prepared_transactions_delivered_early_give_the_same_rows(seed: int, steps: int) -> None:
    history = make_history(Random(seed), steps)
    for way in WAYS:
        sent = Server(history, random=Random(seed + 1), **way).run()
        with Assembler(hand_on_prepared=True) as assembler:
            told = tell(read(sent, way, assembler))
        check_told(told, history, way)


@pytest.mark.parametrize("hand_on_prepared", [False, True])
@pytest.mark.parametrize("lives_on", [False, True])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32), steps=st.integers(60, 200))
def test_interruptions_lose_and_duplicate_nothing(
    hand_on_prepared: bool, lives_on: bool, seed: int, steps: int
) -> None:
    """The assembler lives on and reconnects, or a new one has its position, which the server may not have received."""
    history = make_history(Random(seed), steps)
    for way in WAYS:
        random = Random(seed)
        events: list[Event] = []
        assembler = Assembler(hand_on_prepared=hand_on_prepared)
        acknowledged = [Lsn(0)]
        is_last = False
        while not is_last:
            start = acknowledged[-1] if random.random() < 0.7 else random.choice(acknowledged)
            sent = Server(history, random=random, start=start, **way).run()
            is_last = random.random() < 0.15
            part = sent if is_last else sent[: random.randrange(len(sent) + 1)]
            events += read(part, way, assembler)
            position = assembler.position
            assert position.delivered >= position.acknowledged >= acknowledged[-1]
            acknowledged.append(position.acknowledged)
            if lives_on:
                assembler.reconnect()
            else:
                assembler.close()
                assembler = Assembler(hand_on_prepared=hand_on_prepared, after=position)
        check_told(tell(events), history, way)
        assembler.close()


def test_the_model_makes_histories_of_all_kinds() -> None:
    kinds = set()
    answers = 0
    for seed in range(40):
        history = make_history(Random(seed), 150)
        kinds |= {step.kind.split()[0] if step.kind[-1].isdigit() else step.kind for step in history.steps}
        answers += len(history.answers)
    assert kinds == {
        "begin", "write", "savepoint", "rollback", "release", "emit", "crash", "abort", "commit",
        "prepare", "commit prepared", "rollback prepared",
    }  # fmt: skip
    assert answers > 100
