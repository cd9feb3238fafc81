"""Changes in batches of one Relation message are those that are read message by message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep import Decoder, Lsn
from logicalrep.arrow.batch_intake import BatchIntake, WholeTransactions
from logicalrep.arrow.changes.change_batch import NEW, UNREADABLE
from logicalrep.arrow.changes.change_decoder import ChangeDecoder
from logicalrep.arrow.changes.table_changes import TableChanges, by_table
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import ChangeRow, change_rows
from logicalrep.transactions.transaction import Decision
from logicalrep_protocol import v1, v2
from logicalrep_protocol.versions import AnyMessage
from logicalrep_runtime.scalars import Oid, TransactionId
from tests.pipeline.changes import plain
from tests.protocol.captured import Capture, capture_name, collected, each_selected, read
from tests.transactions.wire import (
    STOP,
    TABLE,
    begin,
    commit,
    insert,
    relation,
    row,
    start,
    stream_commit,
    streamed_insert,
    streamed_relation,
)


def decoded(messages: list[tuple[int, bytes]], decoder: Decoder) -> list[TableChanges]:
    """Return the changes of a session's messages."""
    decoded_changes: list[TableChanges] = []
    with Assembler() as assembler:
        intake, changes = BatchIntake(assembler, 1 << 20), ChangeDecoder()
        intake.connect(decoder)
        for event in intake.take(messages):
            if isinstance(event, Decision):
                assert event.error is None
            else:
                assert isinstance(event, WholeTransactions)
                decoded_changes += changes.changes(event)
    return decoded_changes


def rows_of(changes: TableChanges) -> list[tuple[Any, ...]]:
    return [
        (lsn, ordinal, xid, op, old, new, sorted(set(batch.relation.names) - {*(new or batch.relation.names)}))
        for batch in changes.batches
        for lsn, ordinal, xid, (op, old, new) in zip(
            batch.lsns.tolist(), batch.ordinals.tolist(), batch.rows["xid"].to_pylist(), plain(batch), strict=True
        )
    ]


def expected(rows: list[ChangeRow], changes: TableChanges) -> list[tuple[Any, ...]]:
    """Return rows of the feed as `rows_of` does: the old row of a key has no other values."""
    names = {
        position: batch.relation.names
        for batch in changes.batches
        for position in zip(batch.lsns.tolist(), batch.ordinals.tolist(), strict=True)
    }
    expected_rows = []
    for change_row in rows:
        assert change_row["commit_lsn"] is not None
        lsn = int(Lsn(change_row["commit_lsn"]))
        position = lsn - (lsn >> 63 << 64), change_row["ordinal"]
        old_values = (
            None if change_row["before"] is None else dict.fromkeys(names[position]) | dict(change_row["before"])
        )
        expected_rows.append(
            (
                *position,
                change_row["xid"],
                change_row["op"],
                old_values,
                change_row["after"],
                sorted(change_row["unchanged"]),
            )
        )
    return expected_rows


def check(capture: Capture) -> None:
    if "-bin" in capture.header["variant"]:
        pytest.skip("the rows of the feed have no texts of values in binary format")
    messages = [(0, data) for data in capture.messages]
    feed = change_rows([(Lsn(0), data) for data in capture.messages], capture.decoder(), on_decision=lambda _: None)
    tables: dict[int, list[ChangeRow]] = {}
    for change_row in feed:
        if change_row["relation_id"] is not None:
            tables.setdefault(change_row["relation_id"], []).append(change_row)
    changes_by_oid = by_table(decoded(messages, capture.decoder()))
    assert {oid for oid, changes in changes_by_oid.items() if changes.num_rows} == tables.keys()
    named = {relation.partition for changes in changes_by_oid.values() for relation in changes.relations} - {None}
    assert named == changes_by_oid.keys() - tables.keys()
    for oid, rows in tables.items():
        assert rows_of(changes_by_oid[oid]) == expected(rows, changes_by_oid[oid])


@pytest.mark.slow
@pytest.mark.parametrize("path", each_selected())
def test_captures(path: Path) -> None:
    check(read(path))


@pytest.mark.thorough
@pytest.mark.parametrize("path", collected(), ids=capture_name)
def test_the_corpus(path: Path) -> None:
    check(read(path))


def sent(*messages: AnyMessage) -> list[TableChanges]:
    return decoded([(5, message.build()) for message in messages], Decoder(1))


def test_each_relation_message_has_its_position_and_its_rows() -> None:
    described = relation("id", "v")
    (changes,) = sent(
        begin(7, 100), described, insert("1", "a"), insert("2", "b"), described, insert("3", "c"), commit(100),
        begin(8, 200), insert("4", "d"), relation("id", "w"), insert("5", "e"), commit(200),
    )  # fmt: skip
    assert [
        (description.xid, description.commit_lsn, description.ordinal, description.names)
        for description in changes.relations
    ] == [
        (7, 100, 0, ("id", "v")),
        (7, 100, 2, ("id", "v")),
        (8, 200, 1, ("id", "w")),
    ]
    assert [(batch.relation.names, batch.num_rows) for batch in changes.batches] == [(("id", "v"), 4), (("id", "w"), 1)]


def test_a_table_that_is_described_directly_before_another_one_may_be_that_of_a_partition() -> None:
    root, part, other = relation("id"), relation("id", oid=2), relation("id", oid=3)
    in_whole = [
        begin(7, 100), root, part, insert("1"), insert("2"), root, other, insert("3"), commit(100),
        begin(8, 200), root, insert("4"), part, insert("5"), commit(200),
    ]  # fmt: skip
    assert partitions_of(sent(*in_whole)) == [(TABLE, 0, 2), (TABLE, 2, 3)]
    truncate = v1.Truncate(options=0, relation_ids=(TABLE, Oid(2)))
    assert partitions_of(sent(begin(7, 100), root, part, truncate, commit(100))) == []


def test_a_streamed_transaction_tells_the_partitions_of_its_tables() -> None:
    streamed: list[AnyMessage] = [
        start(7, first=True),
        streamed_relation(7, "id"), streamed_relation(7, "id", oid=2), streamed_insert(7, "1"),
        streamed_relation(7, "id"), streamed_relation(7, "id", oid=3), streamed_insert(7, "2"),
        streamed_relation(7, "id", oid=4), streamed_relation(7, "id", oid=5),
        v2.Truncate(xid=TransactionId(7), options=0, relation_ids=(Oid(4), Oid(5))),
        STOP, stream_commit(7, 100),
    ]  # fmt: skip
    messages = [(5, message.build()) for message in streamed]
    assert partitions_of(decoded(messages, Decoder(2))) == [(TABLE, 0, 2), (TABLE, 0, 3)]


def partitions_of(tables: list[TableChanges]) -> list[tuple[int, int, int]]:
    """Return the tables of partitions, the ordinals of the messages, and the partitions."""
    relations = [relation for changes in tables for relation in changes.relations]
    return [
        (relation.relation_id, relation.ordinal, relation.partition)
        for relation in relations
        if relation.partition is not None
    ]


def test_a_truncate_is_between_the_changes_before_and_after_it() -> None:
    truncate = v1.Truncate(options=0, relation_ids=(TABLE,))
    (changes,) = sent(begin(7, 100), relation("id"), insert("1"), truncate, insert("2"), commit(100))
    assert [row[1:4] for row in rows_of(changes)] == [(0, 7, "insert"), (1, 7, "truncate"), (2, 7, "insert")]


def test_a_value_that_is_no_text_makes_its_transaction_unreadable() -> None:
    bad = v1.Insert(relation_id=TABLE, new=v1.TupleData.of(v1.Text(b"1"), v1.Text(b"\xff")))
    (changes,) = sent(
        begin(7, 100), relation("id", "v"), insert("1", "a"), commit(100),
        begin(8, 200), insert("2", "b"), bad, commit(200),
        begin(9, 300), insert("3", "c"), commit(300),
    )  # fmt: skip
    (batch,) = changes.batches
    assert (batch.ops == UNREADABLE).tolist() == [False, True, True, False]
    assert batch.unsent()[1:3].tolist() == [[False, True]] * 2
    assert changes.readable().lsns.tolist() == [100, 300]
    assert batch.texts(NEW)[1].to_pylist() == ["a", "b", None, "c"]


def test_a_key_row_has_what_was_sent() -> None:
    update = v1.Update(relation_id=TABLE, old_kind="K", old=row("1", None), new=row("2", "b"))
    (changes,) = sent(begin(7, 100), relation("id", "v"), update, commit(100))
    assert plain(changes.batches[0]) == [("update", {"id": "1", "v": None}, {"id": "2", "v": "b"})]
