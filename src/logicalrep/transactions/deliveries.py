"""An assembler's deliveries: the delivered position, and the prepared transactions that wait for their decision."""

from __future__ import annotations

from collections.abc import Iterable

from logicalrep.transactions.open_transactions import HeldTransaction, OpenTransaction
from logicalrep.transactions.relations import (
    DeliveredRelations,
    Relations,
    SchemaChange,
    StreamRelations,
    TableDescription,
)
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.spill import SpillArea
from logicalrep.transactions.transaction import Decision, Event, PreparedTransaction, Transaction
from logicalrep_protocol.versions import (
    BeginPrepare,
    Commit,
    CommitPrepared,
    Prepare,
    RollbackPrepared,
    StreamCommit,
    StreamPrepare,
)
from logicalrep_runtime.scalars import Lsn


class Deliveries:
    def __init__(
        self,
        position: ResumeToken,
        relations: Iterable[TableDescription],
        session_relations: Relations,
        area: SpillArea,
        *,
        hand_on_prepared: bool,
    ) -> None:
        """Resume from a position; `relations` are the last descriptions in the delivered transactions."""
        self._hands_on_prepared = hand_on_prepared
        self._delivered = position.delivered
        self._acknowledged = position.acknowledged
        self.resumed_at = position.delivered
        self._prepared = dict(position.prepared)
        # The descriptions of undecided prepared transactions, which the decision confirms or takes back.
        self._undecided: dict[str, tuple[tuple[SchemaChange, ...], StreamRelations | None]] = {}
        self._held: dict[str, HeldTransaction] = {}
        self._area = area
        self._session_relations = session_relations
        self._delivered_relations = DeliveredRelations(relations)

    @property
    def position(self) -> ResumeToken:
        return ResumeToken(delivered=self._delivered, acknowledged=self._acknowledged, prepared=dict(self._prepared))

    @property
    def relations(self) -> tuple[TableDescription, ...]:
        return self._delivered_relations.all()

    def reconnect(self) -> None:
        """Begin another session; the server may send delivered transactions again."""
        self.resumed_at = self._delivered

    def adopt(self, relations: StreamRelations | None) -> None:
        if relations is not None:
            self._session_relations.adopt(relations)

    def commit(
        self, open_: OpenTransaction, message: Commit | StreamCommit | CommitPrepared, gid: str | None
    ) -> tuple[Event, ...]:
        if message.commit_lsn < self.resumed_at:
            self._area.discard(open_.log)
            return ()
        self.deliver(message.end_lsn)
        transaction = Transaction(
            xid=open_.xid,
            commit_lsn=message.commit_lsn,
            end_lsn=message.end_lsn,
            commit_timestamp=message.commit_timestamp,
            origin=None if open_.origin is None else open_.origin.name,
            origin_lsn=None if open_.origin is None else open_.origin.origin_lsn,
            gid=gid,
            changes=self._area.release(open_.log),
            schema_changes=self._delivered_relations.deliver(open_.uses),
            partitions=open_.partitions,
        )
        return (transaction,)

    def prepare(self, open_: OpenTransaction, message: Prepare | StreamPrepare) -> tuple[Event, ...]:
        if not open_.is_new:
            # It was delivered before a restart; only its decision is new.
            self._area.discard(open_.log)
            return ()
        # A transaction prepared before the restart was either decided before it too, or was prepared before two_phase
        # was enabled and is sent now because it is committed. Its decision follows soon and distinguishes the two.
        if self._hands_on_prepared and message.prepare_lsn >= self.resumed_at:
            return (self._hand_on_prepared(open_, message),)
        repeated = self._held.pop(message.gid, None)
        if repeated is not None:
            self._area.discard(repeated.open.log)
        self._held[message.gid] = HeldTransaction(open_, message)
        return ()

    def commit_prepared(self, message: CommitPrepared) -> tuple[Event, ...]:
        held = self._take_held(message)
        is_repeated = message.commit_lsn < self.resumed_at
        if held is not None:
            if not self._hands_on_prepared:
                self.adopt(held.open.relations)
                return self.commit(held.open, message, gid=message.gid)
            if is_repeated:
                self._area.discard(held.open.log)
                return ()
            prepared = self._hand_on_prepared(held.open, held.prepare)
            return prepared, self._decide(message, was_delivered=True)
        if is_repeated:
            return ()
        return (self._decide(message, was_delivered=message.gid in self._prepared),)

    def roll_back_prepared(self, message: RollbackPrepared) -> tuple[Event, ...]:
        """Take the decision to roll back; return it, unless the transaction was never delivered."""
        held = self._take_held(message)
        if held is not None:
            # It was never delivered.
            self._area.discard(held.open.log)
            self.deliver(message.rollback_end_lsn)
            return ()
        if message.rollback_end_lsn <= self.resumed_at:
            return ()
        return (self._decide(message, was_delivered=self._prepared.get(message.gid) == message.prepare_end_lsn),)

    def is_known(self, message: BeginPrepare | Prepare | StreamPrepare) -> bool:
        return self._prepared.get(message.gid) == message.end_lsn

    def deliver(self, lsn: Lsn) -> None:
        """Record that every transaction that took effect before a position is delivered or held."""
        self._delivered = max(self._delivered, lsn)
        held = (transaction.prepare.prepare_lsn for transaction in self._held.values())
        # `lsn`, not `delivered`: after a restart the server may still have to resend prepared transactions to hold.
        self._acknowledged = max(self._acknowledged, min((lsn, *held)))

    def _take_held(self, message: CommitPrepared | RollbackPrepared) -> HeldTransaction | None:
        held = self._held.get(message.gid)
        if held is None or held.prepare.xid != message.xid:
            return None
        return self._held.pop(message.gid)

    def _hand_on_prepared(self, open_: OpenTransaction, message: Prepare | StreamPrepare) -> PreparedTransaction:
        self._prepared[message.gid] = message.end_lsn
        schema_changes = self._delivered_relations.deliver(open_.uses)
        self._undecided[message.gid] = schema_changes, open_.relations
        self.deliver(message.end_lsn)
        return PreparedTransaction(
            xid=open_.xid,
            gid=message.gid,
            prepare_lsn=message.prepare_lsn,
            end_lsn=message.end_lsn,
            prepare_timestamp=message.prepare_timestamp,
            origin=None if open_.origin is None else open_.origin.name,
            origin_lsn=None if open_.origin is None else open_.origin.origin_lsn,
            changes=self._area.release(open_.log),
            schema_changes=schema_changes,
        )

    def _decide(self, message: CommitPrepared | RollbackPrepared, *, was_delivered: bool) -> Decision:
        commit_lsn: Lsn | None
        if isinstance(message, CommitPrepared):
            commit_lsn, end_lsn, timestamp = message.commit_lsn, message.end_lsn, message.commit_timestamp
        else:
            commit_lsn, end_lsn, timestamp = None, message.rollback_end_lsn, message.rollback_timestamp
        committed = commit_lsn is not None
        if was_delivered:
            del self._prepared[message.gid]
            schema_changes, relations = self._undecided.pop(message.gid, ((), None))
            if committed:
                self.adopt(relations)
            else:
                self._delivered_relations.take_back(schema_changes)
        self.deliver(end_lsn)
        return Decision(
            gid=message.gid,
            xid=message.xid,
            committed=committed,
            known=was_delivered,
            commit_lsn=commit_lsn,
            end_lsn=end_lsn,
            timestamp=timestamp,
        )
