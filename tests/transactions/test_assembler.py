"""The assembler's events for each kind of transaction, and its errors for invalid sequences of messages."""

from __future__ import annotations

import pytest

from logicalrep import Lsn, Oid, TimestampTz, v1, v2
from logicalrep.transactions import assembler
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.relations import SchemaChange
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision, NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import AnyMessage
from tests.transactions.wire import (
    STOP,
    TABLE,
    begin,
    begin_prepare,
    commit,
    commit_prepared,
    feed,
    ids,
    insert,
    message,
    only_transaction,
    prepare,
    relation,
    rollback_prepared,
    start,
    stream_abort,
    stream_commit,
    stream_prepare,
    streamed_insert,
    streamed_relation,
)


def prepared(xid: int, gid: str, lsn: int, *values: str) -> list[AnyMessage]:
    """Return a prepared transaction that is sent whole."""
    return [
        begin_prepare(xid, gid, lsn),
        relation("id"),
        *(insert(value) for value in values),
        prepare(xid, gid, lsn),
    ]


class TestWholeTransactions:
    def test_a_transaction_has_what_its_begin_and_commit_say(self) -> None:
        origin = v1.Origin(origin_lsn=Lsn(55), name="node")
        out = feed(Assembler(), begin(7, 100), origin, relation("id"), insert("1"), insert("2"), commit(100))
        transaction = only_transaction(out)
        assert (transaction.xid, transaction.gid) == (7, None)
        assert (transaction.commit_lsn, transaction.end_lsn) == (100, 108)
        assert transaction.commit_timestamp == TimestampTz(100)
        assert (transaction.origin, transaction.origin_lsn) == ("node", 55)
        assert [change.ordinal for change in transaction.changes] == [0, 1]
        assert len(transaction.changes) == 2

    def test_a_transaction_without_changes_is_delivered(self) -> None:
        assert len(only_transaction(feed(Assembler(), begin(7, 100), commit(100))).changes) == 0

    def test_a_truncate_is_a_change_for_each_table(self) -> None:
        truncate = v1.Truncate(options=1, relation_ids=(TABLE, Oid(5)))
        out = feed(Assembler(), begin(7, 1), relation("id"), relation("x", oid=5, name="o"), truncate, commit(1))
        changes = list(only_transaction(out).changes)
        assert [(change.ordinal, change.op, str(change.relation)) for change in changes] == [
            (0, "truncate", "s.t"),
            (1, "truncate", "s.o"),
        ]


class TestStreamedTransactions:
    def test_transactions_are_delivered_in_commit_order(self) -> None:
        assembler = Assembler()
        feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "7a"), STOP)
        feed(assembler, start(9, first=True), streamed_relation(9, "id"), streamed_insert(9, "9a"), STOP)
        feed(assembler, start(7), streamed_insert(7, "7b"), STOP)
        assert ids(only_transaction(feed(assembler, stream_commit(9, 100)))) == ["9a"]
        assert ids(only_transaction(feed(assembler, stream_commit(7, 200)))) == ["7a", "7b"]

    def test_a_transaction_that_restarts_discards_its_earlier_changes(self) -> None:
        assembler = Assembler()
        for value in ("lost", "kept"):
            feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, value), STOP)
        assert ids(only_transaction(feed(assembler, stream_commit(7, 100)))) == ["kept"]

    def test_a_transaction_that_is_rolled_back_leaves_nothing(self) -> None:
        assembler = Assembler()
        feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "1"), STOP)
        assert feed(assembler, stream_abort(7)) == []
        assert assembler.memory == 0
        with pytest.raises(TransactionError, match="was not streamed"):
            feed(assembler, stream_commit(7, 100))

    def test_an_abort_of_an_unknown_transaction_is_nothing(self) -> None:
        assert feed(Assembler(), stream_abort(7), stream_abort(7, 8)) == []

    def test_nested_subtransactions_are_cut_at_any_depth(self) -> None:
        assembler = Assembler()
        feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "top"))
        feed(assembler, streamed_insert(8, "outer"), streamed_insert(9, "inner"), streamed_insert(8, "outer again"))
        feed(assembler, STOP, stream_abort(7, 9), start(7), streamed_insert(10, "next"), STOP)
        feed(assembler, stream_abort(7, 9), stream_abort(7, 99))
        assert ids(only_transaction(feed(assembler, stream_commit(7, 100)))) == ["top", "outer", "next"]

    def test_numbers_stay_without_gaps(self) -> None:
        assembler = Assembler()
        feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(8, "a"), STOP)
        feed(assembler, stream_abort(7, 8), start(7), streamed_relation(7, "id"), streamed_insert(9, "b"), STOP)
        transaction = only_transaction(feed(assembler, stream_commit(7, 100)))
        assert [(change.ordinal, ids(transaction)) for change in transaction.changes] == [(0, ["b"])]


class TestSchemaChanges:
    def schema_changes(self, transaction: Transaction | PreparedTransaction) -> list[tuple[int, int, int]]:
        """Return each change's ordinal, and its number of columns before and after."""
        return [
            (change.ordinal, 0 if change.old is None else len(change.old.columns), len(change.new.columns))
            for change in transaction.schema_changes
        ]

    def test_a_table_is_new_once(self) -> None:
        assembler = Assembler()
        first = feed(assembler, begin(7, 1), relation("id"), insert("1"), relation("id"), insert("1"), commit(1))
        second = feed(assembler, begin(8, 20), relation("id"), insert("2"), commit(20))
        assert self.schema_changes(only_transaction(first)) == [(0, 0, 1)]
        assert self.schema_changes(only_transaction(second)) == []

    def test_they_stand_before_the_first_change_of_the_new_form(self) -> None:
        out = feed(
            Assembler(), begin(7, 1), relation("id"), insert("1"), relation("id", "b"), insert("2", "b"), commit(1)
        )
        transaction = only_transaction(out)
        kinds = [type(event).__name__ for event in transaction.events()]
        assert kinds == ["SchemaChange", "Change", "SchemaChange", "Change"]
        assert self.schema_changes(transaction) == [(0, 0, 1), (1, 1, 2)]

    def test_changes_of_a_rolled_back_subtransaction_are_discarded(self) -> None:
        assembler = Assembler()
        feed(assembler, begin(6, 1), relation("id"), insert("0"), commit(1))
        feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "1"))
        feed(assembler, streamed_relation(8, "id", "b"), streamed_insert(8, "2", "b"), STOP, stream_abort(7, 8))
        # No Relation is repeated here, though servers send one.
        feed(assembler, start(7), streamed_insert(7, "3"), STOP)
        transaction = only_transaction(feed(assembler, stream_commit(7, 100)))
        assert self.schema_changes(transaction) == []
        assert [len(change.relation.columns) for change in transaction.changes if change.relation] == [1, 1]

    def test_changes_of_a_rolled_back_transaction_are_discarded(self) -> None:
        assembler = Assembler()
        feed(assembler, begin(6, 1), relation("id"), insert("0"), commit(1))
        feed(assembler, start(7, first=True), streamed_relation(7, "id", "b"), streamed_insert(7, "1", "b"), STOP)
        feed(assembler, stream_abort(7))
        out = feed(assembler, begin(8, 20), insert("2"), commit(20))
        assert self.schema_changes(only_transaction(out)) == []

    def test_an_uncommitted_definition_is_invisible_to_other_sessions(self) -> None:
        assembler = Assembler()
        feed(assembler, begin(6, 1), relation("id"), insert("0"), commit(1))
        feed(assembler, start(7, first=True), streamed_relation(7, "id", "b"), streamed_insert(7, "1", "b"), STOP)
        out = feed(assembler, begin(8, 20), insert("2"), commit(20))
        assert ids(only_transaction(out)) == ["2"]
        transaction = only_transaction(feed(assembler, stream_commit(7, 100)))
        assert self.schema_changes(transaction) == [(0, 1, 2)]
        assert ids(only_transaction(feed(assembler, begin(9, 120), insert("3", "b"), commit(120)))) == ["3"]

    def test_a_commit_does_not_bring_back_an_older_form(self) -> None:
        assembler = Assembler()
        feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "1"), STOP)
        feed(assembler, begin(8, 20), relation("id", "b"), insert("2", "b"), commit(20), stream_commit(7, 100))
        assert ids(only_transaction(feed(assembler, begin(9, 120), insert("3", "b"), commit(120)))) == ["3"]

    def test_known_relations_survive_a_restart(self) -> None:
        first = Assembler()
        feed(first, begin(7, 1), relation("id"), insert("1"), commit(1))
        second = Assembler(after=first.position, relations=first.relations)
        out = feed(second, begin(8, 20), relation("id"), insert("2"), commit(20))
        assert self.schema_changes(only_transaction(out)) == []

    def test_a_prepared_transaction_takes_them_back_when_it_is_rolled_back(self) -> None:
        assembler = Assembler(hand_on_prepared=True)
        feed(assembler, begin(6, 1), relation("id"), insert("0"), commit(1))
        messages: list[AnyMessage] = [
            begin_prepare(7, "g", 20),
            relation("id", "b"),
            insert("1", "b"),
            prepare(7, "g", 20),
        ]
        [transaction] = feed(assembler, *messages)
        assert isinstance(transaction, PreparedTransaction)
        assert self.schema_changes(transaction) == [(0, 1, 2)]
        feed(assembler, rollback_prepared(7, "g", 20, 40))
        out = feed(assembler, begin(8, 60), relation("id"), insert("2"), commit(60))
        assert self.schema_changes(only_transaction(out)) == []

    def test_the_names_of_types_belong_to_a_table(self) -> None:
        column = v1.Column(flags=1, name="id", type_id=Oid(70000), type_modifier=-1)
        described = v1.Relation(
            relation_id=TABLE, namespace="", name="t", replica_identity=v1.ReplicaIdentity("d"), columns=(column,)
        )
        mood = v1.Type(type_id=Oid(70000), namespace="s", name="mood")
        out = feed(Assembler(), begin(7, 1), mood, described, insert("1"), commit(1))
        [schema_change] = only_transaction(out).schema_changes
        assert schema_change == SchemaChange(ordinal=0, old=None, new=schema_change.new)
        assert schema_change.new.types == (mood,)
        assert str(schema_change.new) == "pg_catalog.t"


class TestPreparedTransactions:
    def test_held_transactions_are_delivered_with_their_commit(self) -> None:
        assembler = Assembler()
        assert feed(assembler, *prepared(7, "g", 100, "1")) == []
        transaction = only_transaction(feed(assembler, commit_prepared(7, "g", 200)))
        assert (transaction.gid, transaction.commit_lsn, transaction.end_lsn) == ("g", 200, 208)
        assert ids(transaction) == ["1"]

    def test_held_transactions_that_are_rolled_back_are_never_delivered(self) -> None:
        assembler = Assembler()
        assert feed(assembler, *prepared(7, "g", 100, "1"), rollback_prepared(7, "g", 100, 200)) == []
        assert assembler.position.delivered == 208
        assert assembler.memory == 0

    def test_prepared_transactions_are_delivered_immediately_and_their_decision_later(self) -> None:
        assembler = Assembler(hand_on_prepared=True)
        [transaction] = feed(assembler, *prepared(7, "g", 100, "1"))
        assert isinstance(transaction, PreparedTransaction)
        assert (transaction.prepare_lsn, transaction.end_lsn, transaction.prepare_timestamp) == (100, 108, 100)
        [decision] = feed(assembler, commit_prepared(7, "g", 200))
        assert decision == Decision(
            gid="g",
            xid=transaction.xid,
            committed=True,
            known=True,
            commit_lsn=Lsn(200),
            end_lsn=Lsn(208),
            timestamp=TimestampTz(200),
        )

    @pytest.mark.parametrize("hand_on_prepared", [False, True])
    def test_a_decision_on_an_unknown_transaction_is_reported(self, hand_on_prepared: bool) -> None:
        assembler = Assembler(hand_on_prepared=hand_on_prepared)
        decisions = feed(assembler, commit_prepared(7, "g", 200), rollback_prepared(8, "h", 100, 300))
        assert [(decision.committed, decision.known) for decision in decisions if isinstance(decision, Decision)] == [
            (True, False),
            (False, False),
        ]

    def test_a_gid_is_recognised_after_a_restart(self) -> None:
        first = Assembler(hand_on_prepared=True)
        feed(first, *prepared(7, "g", 100, "1"))
        second = Assembler(hand_on_prepared=True, after=first.position)
        assert feed(second, *prepared(7, "g", 100, "1")) == []
        [decision] = feed(second, commit_prepared(7, "g", 200))
        assert isinstance(decision, Decision)
        assert decision.known
        assert second.position.prepared == {}

    def test_a_gid_that_is_used_again_is_another_transaction(self) -> None:
        first = Assembler(hand_on_prepared=True)
        feed(first, *prepared(7, "g", 100, "1"), commit_prepared(7, "g", 200), *prepared(8, "g", 300, "2"))
        assert first.position.prepared == {"g": 308}
        second = Assembler(hand_on_prepared=True, after=first.position)
        # The server has not been told that the first transaction is safe.
        assert (
            feed(second, *prepared(7, "g", 100, "1"), commit_prepared(7, "g", 200), *prepared(8, "g", 300, "2")) == []
        )
        [decision] = feed(second, rollback_prepared(8, "g", 300, 400))
        assert isinstance(decision, Decision)
        assert (decision.known, decision.committed) == (True, False)

    @pytest.mark.parametrize("hand_on_prepared", [False, True])
    def test_a_transaction_prepared_before_two_phase_is_delivered_with_its_commit(self, hand_on_prepared: bool) -> None:
        position = ResumeToken(delivered=Lsn(250), acknowledged=Lsn(250))
        assembler = Assembler(hand_on_prepared=hand_on_prepared, after=position)
        out = feed(assembler, *prepared(7, "g", 100, "1"), commit_prepared(7, "g", 400))
        kinds = [type(event) for event in out]
        assert kinds == ([PreparedTransaction, Decision] if hand_on_prepared else [Transaction])
        assert not isinstance(out[0], NonTransactionalMessage | Decision)
        assert len(out[0].changes) == 1

    def test_streamed_transactions_are_delivered_in_the_same_way(self) -> None:
        for hand_on_prepared in (False, True):
            assembler = Assembler(hand_on_prepared=hand_on_prepared)
            feed(assembler, start(7, first=True), streamed_relation(7, "id"), streamed_insert(7, "1"), STOP)
            out = feed(assembler, stream_prepare(7, "g", 100), commit_prepared(7, "g", 200))
            assert isinstance(out[0], PreparedTransaction if hand_on_prepared else Transaction)
            assert len(out) == 1 + hand_on_prepared

    def test_a_held_transaction_that_is_sent_twice_is_stored_once(self) -> None:
        assembler = Assembler()
        feed(assembler, *prepared(7, "g", 100, "1"))
        assembler.reconnect()
        feed(assembler, *prepared(7, "g", 100, "1"))
        assert ids(only_transaction(feed(assembler, commit_prepared(7, "g", 200)))) == ["1"]
        assert assembler.memory == 0


class TestPositions:
    def test_the_end_of_what_was_handed_on_may_be_acknowledged(self) -> None:
        assembler = Assembler()
        feed(assembler, start(9, first=True), STOP, begin(7, 100), commit(100))
        assert assembler.position == ResumeToken(delivered=Lsn(108), acknowledged=Lsn(108))

    def test_a_held_transaction_holds_it_back_to_its_prepare_record(self) -> None:
        assembler = Assembler()
        feed(assembler, *prepared(7, "g", 100, "1"), begin(8, 200), commit(200))
        assert assembler.position == ResumeToken(delivered=Lsn(208), acknowledged=Lsn(100))
        feed(assembler, commit_prepared(7, "g", 300))
        assert assembler.position == ResumeToken(delivered=Lsn(308), acknowledged=Lsn(308))

    def test_a_delivered_transaction_does_not_hold_the_position(self) -> None:
        assembler = Assembler(hand_on_prepared=True)
        feed(assembler, *prepared(7, "g", 100, "1"), begin(8, 200), commit(200))
        assert assembler.position == ResumeToken(delivered=Lsn(208), acknowledged=Lsn(208), prepared={"g": Lsn(108)})

    def test_a_keepalive_moves_it_where_nothing_is_half_received(self) -> None:
        assembler = Assembler()
        assembler.take_keepalive(Lsn(50))
        assert assembler.position.acknowledged == 50
        feed(assembler, begin(7, 100))
        assembler.take_keepalive(Lsn(90))
        assert assembler.position.acknowledged == 50
        feed(assembler, commit(100))
        assembler.take_keepalive(Lsn(90))
        assert assembler.position.acknowledged == 108
        feed(assembler, start(7, first=True), STOP)
        assembler.take_keepalive(Lsn(500))
        assert assembler.position.acknowledged == 500

    def test_it_never_goes_back(self) -> None:
        assembler = Assembler(after=ResumeToken(delivered=Lsn(250), acknowledged=Lsn(250)))
        feed(assembler, *prepared(7, "g", 100, "1"), begin(8, 300), commit(300))
        assert assembler.position.acknowledged == 250


class TestPreparedTransactionsWithoutChanges:
    """PostgreSQL 18 sends no Begin Prepare for a transaction that has only locked rows."""

    def test_a_transaction_is_delivered_at_its_commit(self) -> None:
        assembler = Assembler()
        assert feed(assembler, prepare(7, "g", 100), begin(8, 110), commit(110))[-1].xid == 8  # type: ignore[union-attr]
        assert assembler.position.acknowledged == 100
        (transaction,) = feed(assembler, commit_prepared(7, "g", 200))
        assert isinstance(transaction, Transaction)
        assert (transaction.gid, transaction.commit_lsn, list(transaction.changes)) == ("g", 200, [])
        assert assembler.position.acknowledged == 208

    def test_a_transaction_that_is_rolled_back_is_not_delivered(self) -> None:
        assembler = Assembler()
        assert feed(assembler, prepare(7, "g", 100), rollback_prepared(7, "g", 100, 200)) == []

    def test_it_is_handed_on_as_prepared_once(self) -> None:
        assembler = Assembler(hand_on_prepared=True)
        (handed_on,) = feed(assembler, prepare(7, "g", 100))
        assert isinstance(handed_on, PreparedTransaction)
        assert (handed_on.gid, handed_on.prepare_lsn, list(handed_on.changes)) == ("g", 100, [])
        resumed = Assembler(hand_on_prepared=True, after=assembler.position)
        (decision,) = feed(resumed, prepare(7, "g", 100), commit_prepared(7, "g", 200))
        assert isinstance(decision, Decision)
        assert decision.known


class TestErrors:
    @pytest.mark.parametrize(
        ("messages", "text"),
        [
            ([insert("1")], "Insert at 0/1: comes outside of transactions and stream segments"),
            ([message(b"")], "Message at 0/1: comes outside of transactions and stream segments"),
            (
                [begin(7, 9), begin(8, 9)],
                "Begin at 0/1 in transaction 7: comes before the end of the transaction or stream segment",
            ),
            (
                [begin(7, 9), commit(10)],
                "Commit at 0/1 in transaction 7: commits at 0/A, but Begin announced 0/9",
            ),
            ([begin(7, 9), STOP], "Stream Stop at 0/1 in transaction 7: closes a segment that no Stream Start opened"),
            (
                [start(7, first=True), commit(9)],
                "Commit at 0/1 in transaction 7: closes a transaction that no Begin opened",
            ),
            (
                [begin(7, 9), prepare(7, "g", 9)],
                "Prepare at 0/1 in transaction 7: closes a transaction that no Begin Prepare opened",
            ),
            (
                [begin_prepare(7, "g", 9), prepare(8, "h", 9)],
                "Prepare at 0/1 in transaction 7: names transaction 8, 'h', but Begin Prepare named 7, 'g'",
            ),
            (
                [start(7)],
                "Stream Start at 0/1 in transaction 7: continues a transaction whose first segment was not sent",
            ),
            (
                [stream_commit(7, 9)],
                "Stream Commit at 0/1 in transaction 7: ends a transaction that was not streamed",
            ),
            (
                [begin(7, 9), insert("1")],
                "Insert at 0/1 in transaction 7: no Relation has described the table with OID 16400",
            ),
            (
                [begin(7, 9), relation("id", "b"), insert("1")],
                "Insert at 0/1 in transaction 7: has 1 values where the Relation of s.t has 2 columns",
            ),
            (
                [begin(7, 9), relation("id"), insert("1", "2")],
                "Insert at 0/1 in transaction 7: has 2 values where the Relation of s.t has 1 columns; "
                "PostgreSQL 15.0 and 15.1 do that for a published column list, 15.2 does not",
            ),
        ],
    )
    def test_a_message_that_makes_no_sense_says_where_and_why(self, messages: list[AnyMessage], text: str) -> None:
        with Assembler() as assembler:
            feed(assembler, *messages[:-1])
            with pytest.raises(TransactionError) as raised:
                feed(assembler, messages[-1])
        assert str(raised.value) == f"[MESSAGE_OUT_OF_PLACE] {text}"
        assert isinstance(raised.value, ValueError)

    def test_it_leaves_the_assembler_as_it_was(self) -> None:
        assembler = Assembler()
        feed(assembler, begin(7, 9), relation("id"), insert("1"))
        for wrong in (insert("1", "2"), begin(8, 9), STOP, commit(10)):
            with pytest.raises(TransactionError):
                feed(assembler, wrong)
        assert ids(only_transaction(feed(assembler, insert("2"), commit(9)))) == ["1", "2"]

    def test_an_update_is_checked_in_both_rows(self) -> None:
        assembler = Assembler()
        feed(assembler, begin(7, 9), relation("id"))
        wide, narrow = insert("1", "2").new, insert("1").new
        for old, new in ((wide, narrow), (narrow, wide)):
            with pytest.raises(TransactionError, match="has 2 values"):
                feed(assembler, v2.Update(relation_id=TABLE, old_kind="K", old=old, new=new))


def test_every_message_has_a_rule() -> None:
    assert {layout.tag for layout in LOGICALREP.messages} == assembler.HANDLERS.keys()
