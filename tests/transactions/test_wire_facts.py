"""Behaviour of real servers that the documentation leaves out, one test each, mostly with captured messages.

The numbers come from a list of such facts, whose part from tuples to positions is here. Facts about connections and
about files without frames are tested with their readers.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logicalrep import Lsn, TimestampTz, v1, v2, v3
from logicalrep.captures.capture import Capture
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.changes import Change
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.transaction import NonTransactionalMessage, Transaction
from logicalrep_protocol.versions import AnyMessage
from tests.transactions import wire
from tests.transactions.captured import find
from tests.transactions.truth import Assembled, assembled
from tests.transactions.wire import (
    STOP,
    TABLE,
    U,
    begin,
    commit,
    feed,
    ids,
    insert,
    only_transaction,
    relation,
    row,
    start,
    stream_abort,
    stream_commit,
    streamed_insert,
    streamed_relation,
)


def one_change(*messages: AnyMessage) -> Change:
    """Return the one change of a transaction."""
    [change] = only_transaction(feed(Assembler(), begin(7, 1), *messages, commit(1))).changes
    return change


def decoded(path: Path) -> list[tuple[Lsn, AnyMessage]]:
    with Capture.open(path) as capture:
        decoder = capture.session.decoder()
        return [(lsn, decoder.decode(data)) for lsn, data in capture]


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    with Capture.open(path) as capture:
        return list(change_rows(capture, capture.session.decoder(), **options))


def transactions(path: Path, **options: Any) -> list[Assembled]:
    with Assembler(**options) as assembler:
        return [event for event in assembled(path, assembler) if isinstance(event, Assembled)]


# Tuples and relations


def test_13_columns_outside_the_key_are_absent_from_a_k_row() -> None:
    delete = v1.Delete(relation_id=TABLE, old_kind="K", old=row("1", None))
    change = one_change(relation("id", "v"), delete)
    assert change.before == {"id": v1.Text(b"1")}
    whole = v1.Delete(relation_id=TABLE, old_kind="O", old=row("1", None))
    change = one_change(relation("id", "v", identity="f"), whole)
    assert change.before == {"id": v1.Text(b"1"), "v": v1.NullValue()}


def test_13_a_key_column_that_is_not_flagged_is_there_all_the_same() -> None:
    unflagged = relation("other", "id")
    delete = v1.Delete(relation_id=TABLE, old_kind="K", old=row("1", "2"))
    assert one_change(unflagged, delete).before == {"other": v1.Text(b"1"), "id": v1.Text(b"2")}


def test_14_an_unchanged_value_is_taken_from_an_o_row() -> None:
    update = v1.Update(relation_id=TABLE, old_kind="O", old=row("1", "long", None), new=row("2", U, U))
    change = one_change(relation("id", "big", "nothing", identity="f"), update)
    assert change.after == {"id": v1.Text(b"2"), "big": v1.Text(b"long"), "nothing": v1.NullValue()}
    assert change.unchanged == ()


@pytest.mark.parametrize("old", [None, ("K", row("1", None))])
def test_14_else_it_is_neither_null_nor_dropped(old: Any) -> None:
    old_kind, old_row = old or (None, None)
    update = v1.Update(relation_id=TABLE, old_kind=old_kind, old=old_row, new=row("2", U))
    change = one_change(relation("id", "big"), update)
    assert change.after == {"id": v1.Text(b"2")}
    assert change.unchanged == ("big",)


def test_14_the_five_states_of_a_column_stay_apart() -> None:
    update = v1.Update(relation_id=TABLE, old_kind="K", old=row("1", None, None, None), new=row("2", "", None, U))
    change = one_change(relation("id", "empty", "nothing", "big"), update)
    assert change.before == {"id": v1.Text(b"1")}
    assert change.after == {"id": v1.Text(b"2"), "empty": v1.Text(b""), "nothing": v1.NullValue()}
    assert change.unchanged == ("big",)


def test_14_in_a_capture() -> None:
    out = rows(find("pg16/toast/v3-bin.sql.jsonl.gz"))
    updates = [change_row for change_row in out if change_row["op"] == "update"]
    assert any(change_row["unchanged"] for change_row in updates if change_row["table"] == "t_def")
    assert not any(change_row["unchanged"] for change_row in updates if change_row["table"] == "t_full")
    # A key that is stored out of line comes as a K row although it did not change.
    keys = [
        change_row
        for change_row in updates
        if change_row["table"] == "t_key" and change_row["before"] and change_row["unchanged"]
    ]
    assert any(set(change_row["before"]) & set(change_row["unchanged"]) for change_row in keys)
    for change_row in updates:
        assert not set(change_row["after"]) & set(change_row["unchanged"])


def test_15_the_flags_are_the_replica_identity() -> None:
    out = rows(find("pg18/basic/v4-par-tp.walsender.jsonl.gz"))
    keys = {row["table"]: row["key"] for row in out}
    assert keys["b_def"] == ["id"]
    assert len(keys["b_full"]) > 1
    assert keys["b_nothing"] == []


def test_16_a_row_filter_makes_an_insert_or_a_delete_of_an_update() -> None:
    path = find("pg17/filters/v3-both-bin.sql.jsonl.gz")
    # truth.check_committed compares that these were updates.
    assert {row["op"] for row in rows(path)} == {"insert", "update", "delete"}


def test_16_what_such_an_insert_does_not_send_is_unchanged() -> None:
    change = one_change(relation("id", "big"), insert("1", U))
    assert (change.op, change.after, change.unchanged) == ("insert", {"id": v1.Text(b"1")}, ("big",))


def test_17_rows_of_partitions_come_under_the_root() -> None:
    path = find("pg18/partition/v1-root.walsender.jsonl.gz")
    out = transactions(path)
    used = {str(change.relation) for event in out for change in event.changes}
    described = {
        f"{message.namespace}.{message.name}" for _, message in decoded(path) if isinstance(message, v1.Relation)
    }
    assert used == {"public.pt", "public.pu"}
    # The partitions are described too, with columns in another order; as no row uses them, they are no schema change.
    assert described > used
    assert {str(new.new) for event in out for new in event.transaction.schema_changes} == used
    for event in out:
        for change in event.changes:
            if change.relation is not None and change.op == "insert":
                assert change.after is not None
                assert change.after["id"].value.isdigit()  # type: ignore[union-attr]


def test_18_a_truncate_has_options_and_a_row_for_each_table() -> None:
    path = find("pg18/basic/v4-par-tp.walsender.jsonl.gz")
    sent = [message for _, message in decoded(path) if isinstance(message, v1.Truncate | v2.Truncate)]
    truncates = [change_row for change_row in rows(path) if change_row["op"] == "truncate"]
    assert len(truncates) == sum(len(message.relation_ids) for message in sent)
    assert {(message.cascade, message.restart_identity) for message in sent} >= {
        (False, False),
        (True, False),
        (False, True),
    }
    for change_row in truncates:
        assert (change_row["before"], change_row["after"], change_row["unchanged"]) == (None, None, [])


def test_19_a_row_that_is_wider_than_its_relation_is_an_error_that_says_why() -> None:
    with pytest.raises(
        TransactionError, match=r"has 3 values where the Relation of s.t has 2 columns; PostgreSQL 15.0"
    ):
        feed(Assembler(), begin(7, 1), relation("id", "v"), insert("1", "2", "3"))


def test_20_stored_generated_columns_come_only_when_published() -> None:
    listed = rows(find("pg18/gencols/v4-list-bin.sql.jsonl.gz"))
    assert any("twice" in row["after"] for row in listed if row["op"] == "insert")
    full = rows(find("pg18/gencols_full/v1.walsender.jsonl.gz"))
    assert all(set(row["key"]) >= set(row["before"]) for row in full if row["before"])


def test_21_each_row_is_bound_to_the_relation_that_is_current_where_it_arrives() -> None:
    assembler = Assembler()
    feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "1"))
    feed(assembler, streamed_relation(8, "id", "b"), streamed_insert(8, "2", "b"), STOP, stream_abort(7, 8))
    feed(assembler, start(7), streamed_relation(7, "id"), streamed_insert(7, "3"))
    feed(assembler, streamed_relation(9, "id", "c"), streamed_insert(9, "4", "c"), STOP)
    changes = only_transaction(feed(assembler, stream_commit(7, 100))).changes
    assert [change.after and tuple(change.after) for change in changes] == [("id",), ("id",), ("id", "c")]


# Streams and transactions


def test_22_the_xid_of_a_row_is_that_of_the_transaction() -> None:
    path = find("pg18/stream/v4-live.walsender.jsonl.gz")
    top = {message.xid for _, message in decoded(path) if isinstance(message, v2.StreamStart)}
    inner = {message.xid for _, message in decoded(path) if isinstance(message, v2.Insert)} - {None} - top
    assert inner
    assert not {row["xid"] for row in rows(path)} & inner


def test_23_an_abort_cuts_back_to_where_the_subtransaction_first_appeared() -> None:
    assembler = Assembler()
    feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "a"), streamed_insert(8, "b"))
    feed(assembler, streamed_insert(9, "c"), streamed_insert(7, "within 8"), STOP)
    feed(assembler, stream_abort(7, 9), stream_abort(7, 8), stream_abort(7, 55))
    assert ids(only_transaction(feed(assembler, stream_commit(7, 100)))) == ["a"]


def test_24_a_message_goes_with_the_subtransaction_that_it_does_not_name() -> None:
    assembler = Assembler()
    feed(assembler, start(7, first=True), streamed_relation(7, "id"), wire.message(b"before", xid=7))
    feed(assembler, streamed_insert(8, "a"), wire.message(b"within", xid=7), STOP, stream_abort(7, 8))
    assert ids(only_transaction(feed(assembler, stream_commit(7, 100)))) == ["before"]


def test_25_a_message_without_a_transaction_comes_at_once() -> None:
    assembler = Assembler()
    feed(assembler, start(7, first=True), STOP)
    free = wire.message(b"x", lsn=50, transactional=False)
    assert feed(assembler, free, lsn=50) == [NonTransactionalMessage(lsn=Lsn(50), message=free)]
    path = find("pg14/messages/v1-msg-live.walsender.jsonl.gz")
    free_rows = [row for row in rows(path) if row["commit_lsn"] is None]
    assert free_rows
    assert all(row["op"] == "message" and row["xid"] is None and row["ordinal"] is None for row in free_rows)


def test_26_empty_segments_and_empty_prepared_transactions() -> None:
    assembler = Assembler()
    out = feed(assembler, start(7, first=True), STOP, start(7), STOP, stream_commit(7, 100))
    assert len(only_transaction(out).changes) == 0
    out = feed(assembler, wire.begin_prepare(8, "g", 120), wire.prepare(8, "g", 120))
    assert out == []
    transaction = only_transaction(feed(assembler, wire.commit_prepared(8, "g", 140)))
    assert (len(transaction.changes), transaction.gid) == (0, "g")


def test_27_without_two_phase_a_prepared_transaction_is_an_ordinary_one() -> None:
    plain = transactions(find("pg16/twophase/v1.sql.jsonl.gz"))
    told = transactions(find("pg16/twophase/v4-live.walsender.jsonl.gz"))
    assert all(event.transaction.gid is None for event in plain)
    assert any(event.transaction.gid is not None for event in told)
    by_xid = {event.transaction.xid: len(event.changes) for event in plain}
    for event in told:
        assert by_xid.get(event.transaction.xid, 0) == len(event.changes)


def test_28_of_several_origins_the_last_counts() -> None:
    origins = [v1.Origin(origin_lsn=Lsn(number), name=f"node {number}") for number in (1, 2)]
    transaction = only_transaction(feed(Assembler(), begin(7, 1), *origins, commit(1)))
    assert (transaction.origin, transaction.origin_lsn) == ("node 2", 2)


def test_28_the_origin_of_a_streamed_transaction_comes_in_its_first_segment() -> None:
    path = find("pg18/stream/v4-live.walsender.jsonl.gz")
    streamed = {message.xid for _, message in decoded(path) if isinstance(message, v2.StreamCommit)}
    with_origin = [event.transaction for event in transactions(path) if event.transaction.origin is not None]
    assert any(transaction.xid in streamed and transaction.origin_lsn == 0 for transaction in with_origin)


# Positions


def test_29_positions_do_not_order_changes() -> None:
    path = find("pg18/stream/v4-live.walsender.jsonl.gz")
    lsns = [lsn for lsn, _ in decoded(path)]
    assert lsns != sorted(lsns)
    assert 0 in lsns
    ordered = [(Lsn(row["commit_lsn"]), row["ordinal"]) for row in rows(path) if row["commit_lsn"]]
    assert ordered == sorted(ordered)
    assert len(set(ordered)) == len(ordered)


def test_30_the_end_of_the_commit_record_is_acknowledged() -> None:
    assembler = Assembler()
    transaction = only_transaction(feed(assembler, begin(7, 100), commit(100)))
    assert transaction.end_lsn > transaction.commit_lsn
    assert assembler.position.acknowledged == transaction.end_lsn


def test_31_a_keepalive_moves_an_idle_slot_on() -> None:
    assembler = Assembler()
    feed(assembler, begin(7, 100), commit(100))
    assembler.take_keepalive(Lsn(5000))
    assert assembler.position.acknowledged == 5000


def test_34_relations_may_have_a_position_or_none() -> None:
    walsender = decoded(find("pg12/origin/v1-raw.walsender.jsonl.gz"))
    sql = decoded(find("pg12/origin/v1.sql.jsonl.gz"))
    assert {lsn for lsn, message in walsender if isinstance(message, v1.Relation)} == {0}
    assert 0 not in {lsn for lsn, message in sql if isinstance(message, v1.Relation)}
    told = [rows(find(f"pg12/origin/{name}.jsonl.gz")) for name in ("v1-raw.walsender", "v1.sql")]
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["pg18/stream/v4-live.walsender", "pg16/twophase/v4-live.walsender"])
def test_35_transactions_are_delivered_in_commit_order(name: str) -> None:
    ends = [event.transaction.end_lsn for event in transactions(find(f"{name}.jsonl.gz"))]
    assert ends == sorted(ends)
    assert max(Counter(ends).values()) == 1


# Where the documentation and the servers disagree


def test_transactions_ended_by_a_crash_are_discarded() -> None:
    path = find("pg16/crash/v4-late.walsender.jsonl.gz")
    aborts = [message for _, message in decoded(path) if message.tag == "A"]
    assert any(getattr(message, "abort_lsn", None) == 0 for message in aborts)
    lost = {message.xid for message in aborts if message.xid == message.subxid}  # type: ignore[union-attr]
    assert lost
    assert not lost & {event.transaction.xid for event in transactions(path)}


def test_transactions_open_at_the_end_are_never_delivered() -> None:
    path = find("pg14/stream/v2-mid.sql.jsonl.gz")
    messages = decoded(path)
    started = {message.xid for _, message in messages if isinstance(message, v2.StreamStart)}
    ended = {
        message.xid
        for _, message in messages
        if isinstance(message, v2.StreamCommit)
        or (isinstance(message, v2.StreamAbort) and message.xid == message.subxid)
    }
    assert started - ended
    assert not (started - ended) & {event.transaction.xid for event in transactions(path)}


def test_a_two_phase_slot_sends_its_messages_to_old_versions_too() -> None:
    path = find("pg16/twophase/v1-tpslot.sql.jsonl.gz")
    assert any(isinstance(message, v3.BeginPrepare) for _, message in decoded(path))
    assert any(event.transaction.gid is not None for event in transactions(path))
    assert any(not isinstance(event.transaction, Transaction) for event in transactions(path, hand_on_prepared=True))


def test_the_time_of_a_transaction_from_an_origin_is_that_of_the_origin() -> None:
    path = find("pg12/origin/v1.sql.jsonl.gz")
    times = [
        event.transaction.commit_timestamp for event in transactions(path) if isinstance(event.transaction, Transaction)
    ]
    assert times != sorted(times)
    assert all(isinstance(timestamp, TimestampTz) for timestamp in times)
