"""The cut of an abort, for any order of appearances and aborts, compared with lists searched from their beginning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logicalrep import TransactionId
from logicalrep.transactions.open_transactions import Subtransactions


class Searched:
    """Subtransactions as a list of positions."""

    def __init__(self, xid: int) -> None:
        self.xid = xid
        self.places: list[tuple[int, tuple[int, int]]] = []

    def appear(self, subxid: int, place: tuple[int, int]) -> None:
        if subxid != self.xid and all(subtransaction != subxid for subtransaction, _ in self.places):
            self.places.append((subxid, place))

    def abort(self, subxid: int) -> tuple[int, int] | None:
        for subtransaction, place in self.places:
            if subtransaction == subxid:
                # The abort cuts off everything from this place on.
                self.places = [entry for entry in self.places if entry[1] < place or entry == (subtransaction, place)]
                self.places.remove((subtransaction, place))
                return place
        return None


@pytest.mark.parametrize("xid", [700, 0xFFFFFFF8])
@given(st.lists(st.tuples(st.sampled_from(["appear", "appear", "appear", "abort"]), st.integers(0, 12))))
def test_an_abort_cuts_where_the_subtransaction_first_appeared(xid: int, steps: list[tuple[str, int]]) -> None:
    subject = Subtransactions(TransactionId(xid))
    expected = Searched(xid)
    changes = 0
    for kind, offset in steps:
        subxid = TransactionId((xid + offset) & 0xFFFFFFFF)
        if kind == "appear":
            subject.appear(subxid, changes, changes // 3)
            expected.appear(subxid, (changes, changes // 3))
            changes += 1
        elif subxid != xid:
            place = subject.abort(subxid)
            assert place == expected.abort(subxid)
            if place is not None:
                changes = place[0]
    assert len(subject) == len(expected.places)


def test_a_million_subtransactions_take_sixteen_bytes_each() -> None:
    subject = Subtransactions(TransactionId(10))
    for number in range(1, 20_001):
        subject.appear(TransactionId(10 + number), number, 0)
        subject.appear(TransactionId(10), number, 0)
    assert len(subject) == 20_000
    assert subject.abort(TransactionId(10 + 20_000)) == (20_000, 0)
    assert subject.abort(TransactionId(10 + 20_000)) is None
    assert sum(part.itemsize for part in (subject.offsets, subject.changes, subject.relations)) == 16
