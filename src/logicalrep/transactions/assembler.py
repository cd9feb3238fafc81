"""The assembler of transactions: messages in, committed transactions out, for any protocol version, without I/O.

A server may send a transaction whole, at its commit; or in segments while it is running, interleaved with those of
other transactions and with rollbacks of subtransactions; or at its PREPARE TRANSACTION, to be decided later. The
assembler turns all of these into committed transactions, in the order in which they took effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, Self

from logicalrep.transactions.changes import Change, ChangeMessage
from logicalrep.transactions.errors import of_another_width, refused
from logicalrep.transactions.open_transactions import HeldTransaction, OpenTransaction
from logicalrep.transactions.relations import (
    DeliveredRelations,
    Relations,
    SchemaChange,
    StreamRelations,
    TableDescription,
)
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.spill import DEFAULT_MEMORY_LIMIT, RawRows, SpillArea
from logicalrep.transactions.transaction import (
    Decision,
    Event,
    NonTransactionalMessage,
    PreparedTransaction,
    Transaction,
)
from logicalrep_protocol.versions import (
    AnyMessage,
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Delete,
    Insert,
    Message,
    Origin,
    Prepare,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    Type,
    Update,
)
from logicalrep_protocol.versions import Relation as RelationMessage
from logicalrep_runtime.scalars import Lsn, Oid, TransactionId


class UnboundRows(Protocol):
    """Consecutive row messages that are not bound to their Relations yet."""

    def bound(self, find: Callable[[Oid], TableDescription | None]) -> RawRows:
        """Return the rows bound to their Relations, up to the first row without one."""

    def subtransactions(self, count: int) -> Iterator[tuple[int, TransactionId]]:
        """Yield the number and xid of each row, among the first `count`, with another xid than the row before."""


class Assembler:
    """A converter of a slot's messages into transactions.

    Close it, or use it as a context manager: undelivered changes may lie in temporary files. A message that raises
    TransactionError leaves the assembler as it was.

    Example:
        >>> with Assembler() as assembler:
        ...     for lsn, data in messages:
        ...         for event in assembler.feed(decoder.decode(data), lsn):
        ...             if isinstance(event, Transaction):
        ...                 for change in event.changes:
        ...                     ...
    """

    def __init__(
        self,
        *,
        hand_on_prepared: bool = False,
        after: ResumeToken | None = None,
        relations: Iterable[TableDescription] = (),
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make an assembler for a slot.

        Args:
            hand_on_prepared: deliver a prepared transaction at once as PreparedTransaction, and its Decision later. If
                false, it is held and delivered as a Transaction at its COMMIT PREPARED, or never.
            after: the `position` of an earlier assembler. Its deliveries are left out.
            relations: the `relations` of that assembler, so that only tables with a new description become schema
                changes.
            memory_limit: the memory for the changes of all open transactions, in bytes; the rest is kept on disk.
            directory: the folder for temporary files, by default the system's. If that lies in memory (tmpfs), name
                another.
        """
        position = after or ResumeToken()
        self._hands_on_prepared = hand_on_prepared
        self._delivered = position.delivered
        self._acknowledged = position.acknowledged
        self._resumed_at = position.delivered
        self._prepared = dict(position.prepared)
        # The descriptions of undecided prepared transactions, which the decision confirms or takes back.
        self._undecided: dict[str, tuple[tuple[SchemaChange, ...], StreamRelations | None]] = {}
        self._area = SpillArea(memory_limit, directory)
        self._session_relations = Relations()
        self._delivered_relations = DeliveredRelations(relations)
        self._streams: dict[TransactionId, OpenTransaction] = {}
        self._held: dict[str, HeldTransaction] = {}
        # The transaction whose messages arrive: between Begin and Commit, Begin Prepare and Prepare, or in a segment.
        self._block: OpenTransaction | None = None

    def feed(self, message: AnyMessage, lsn: Lsn) -> tuple[Event, ...]:
        """Take the next message with its LSN; return the events that it completes, usually none.

        Raises:
            TransactionError: the message cannot come here.
            OSError: a temporary file could not be written.
        """
        return _HANDLERS[message.tag](self, message, lsn)

    def feed_rows(self, arrived: UnboundRows) -> int:
        """Take consecutive rows without `feed` for each; return the number of rows taken.

        It stops at the first row that cannot come here; `feed` raises the error for that one. Raises OSError as `feed`.
        """
        block = self._block
        if block is None:
            return 0
        rows = arrived.bound(lambda relation_id: self._session_relations.find(relation_id, block.relations))
        if not len(rows):
            return 0
        first = len(block.log)
        if block.relations is not None:
            for index, subxid in arrived.subtransactions(len(rows)):
                block.subtransactions.appear(subxid, first + index, len(block.relations))
        if block.is_new:
            for index, relation_id in rows.tables():
                block.use(rows.relations[relation_id], first + index)
            self._area.append(block.log, rows)
        return len(rows)

    def committed_whole(self, descriptions: Iterable[RelationMessage | Type], end_lsn: Lsn) -> None:
        """Take the descriptions of transactions that were sent whole and are read elsewhere, up to their end.

        They are at or after `position`, and no transaction or segment is open here between its messages.
        """
        for message in descriptions:
            if isinstance(message, Type):
                self._session_relations.name_type(message)
            else:
                self._session_relations.describe(message, None)
        self._deliver(end_lsn)

    def take_keepalive(self, lsn: Lsn) -> None:
        """Take a keepalive's LSN, before which the server has sent everything: `position` advances on an idle slot."""
        if self._block is None:
            self._deliver(lsn)

    def reconnect(self) -> None:
        """Prepare for a new connection, which also needs a new Decoder.

        The server sends partly received transactions from their start, Relations again, and perhaps delivered
        transactions, which are left out.
        """
        if self._block is not None and self._block.begin is not None:
            self._area.discard(self._block.log)
        self._block = None
        for stream in self._streams.values():
            self._area.discard(stream.log)
        self._streams.clear()
        self._session_relations.clear()
        self._resumed_at = self._delivered

    @property
    def position(self) -> ResumeToken:
        """The position to resume from once all returned events are safe."""
        return ResumeToken(delivered=self._delivered, acknowledged=self._acknowledged, prepared=dict(self._prepared))

    @property
    def relations(self) -> tuple[TableDescription, ...]:
        """The last description of each table in the delivered transactions."""
        return self._delivered_relations.all()

    @property
    def described(self) -> dict[Oid, TableDescription]:
        """The descriptions by OID that apply to the next transaction that is sent whole."""
        return self._session_relations.all()

    @property
    def memory(self) -> int:
        """The estimated memory of the open transactions' changes, in bytes."""
        return self._area.memory

    def close(self) -> None:
        """Drop all undelivered changes."""
        self._block = None
        self._streams.clear()
        self._held.clear()
        self._area.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Transactions that are sent whole

    def _begin(self, message: Begin | BeginPrepare, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        self._block = block = OpenTransaction(message.xid, self._area.open(), message)
        if isinstance(message, Begin):
            block.is_new = message.final_lsn >= self._resumed_at
        else:
            block.is_new = not self._is_known(message)
        return ()

    def _commit(self, message: Commit, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        if not isinstance(block.begin, Begin):
            raise refused(message, lsn, block.xid, "closes a transaction that no Begin opened")
        if message.commit_lsn != block.begin.final_lsn:
            reason = f"commits at {message.commit_lsn}, but Begin announced {block.begin.final_lsn}"
            raise refused(message, lsn, block.xid, reason)
        self._block = None
        return self._commit_open(block, message, gid=None)

    def _prepare(self, message: Prepare, lsn: Lsn) -> tuple[Event, ...]:
        if self._block is None:
            # It has no changes: PostgreSQL 18 sends no Begin Prepare for it.
            empty = OpenTransaction(message.xid, self._area.open(), None)
            empty.is_new = not self._is_known(message)
            return self._take_prepared(empty, message)
        block = self._inside(message, lsn)
        if not isinstance(block.begin, BeginPrepare):
            raise refused(message, lsn, block.xid, "closes a transaction that no Begin Prepare opened")
        if (message.xid, message.gid) != (block.xid, block.begin.gid):
            announced = f"{block.xid}, {block.begin.gid!r}"
            reason = f"names transaction {message.xid}, {message.gid!r}, but Begin Prepare {announced}"
            raise refused(message, lsn, block.xid, reason)
        self._block = None
        return self._take_prepared(block, message)

    # Transactions that are streamed

    def _stream_start(self, message: StreamStart, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        stream = self._streams.get(message.xid)
        if message.first_segment:
            if stream is not None:
                # The server starts it over after a reconnection; no other message announces that.
                self._area.discard(stream.log)
            stream = self._streams[message.xid] = OpenTransaction(message.xid, self._area.open(), None)
        elif stream is None:
            raise refused(message, lsn, message.xid, "continues a transaction whose first segment was not sent")
        self._block = stream
        return ()

    def _stream_stop(self, message: StreamStop, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        if block.begin is not None:
            raise refused(message, lsn, block.xid, "closes a segment that no Stream Start opened")
        self._block = None
        return ()

    def _stream_commit(self, message: StreamCommit, lsn: Lsn) -> tuple[Event, ...]:
        stream = self._end_stream(message, lsn)
        self._adopt(stream.relations)
        return self._commit_open(stream, message, gid=None)

    def _stream_prepare(self, message: StreamPrepare, lsn: Lsn) -> tuple[Event, ...]:
        stream = self._end_stream(message, lsn)
        stream.is_new = not self._is_known(message)
        return self._take_prepared(stream, message)

    def _stream_abort(self, message: StreamAbort, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        stream = self._streams.get(message.xid)
        if stream is None:
            return ()
        if message.subxid == message.xid:
            del self._streams[message.xid]
            self._area.discard(stream.log)
            return ()
        start = stream.subtransactions.abort(message.subxid)
        if start is not None:
            changes, relations = start
            self._area.truncate(stream.log, changes)
            stream.forget_uses(changes)
            assert stream.relations is not None
            stream.relations.truncate(relations)
        return ()

    def _end_stream(self, message: StreamCommit | StreamPrepare, lsn: Lsn) -> OpenTransaction:
        self._outside(message, lsn)
        stream = self._streams.pop(message.xid, None)
        if stream is None:
            raise refused(message, lsn, message.xid, "ends a transaction that was not streamed")
        return stream

    def _adopt(self, relations: StreamRelations | None) -> None:
        if relations is not None:
            self._session_relations.adopt(relations)

    # Decisions on prepared transactions

    def _commit_prepared(self, message: CommitPrepared, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        held = self._take_held(message)
        is_repeated = message.commit_lsn < self._resumed_at
        if held is not None:
            if not self._hands_on_prepared:
                self._adopt(held.open.relations)
                return self._commit_open(held.open, message, gid=message.gid)
            if is_repeated:
                self._area.discard(held.open.log)
                return ()
            prepared = self._hand_on_prepared(held.open, held.prepare)
            return prepared, self._decide(message, known=True)
        if is_repeated:
            return ()
        return (self._decide(message, known=message.gid in self._prepared),)

    def _rollback_prepared(self, message: RollbackPrepared, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        held = self._take_held(message)
        if held is not None:
            # It was never delivered.
            self._area.discard(held.open.log)
            self._deliver(message.rollback_end_lsn)
            return ()
        if message.rollback_end_lsn <= self._resumed_at:
            return ()
        return (self._decide(message, known=self._prepared.get(message.gid) == message.prepare_end_lsn),)

    def _take_held(self, message: CommitPrepared | RollbackPrepared) -> HeldTransaction | None:
        held = self._held.get(message.gid)
        if held is None or held.prepare.xid != message.xid:
            return None
        return self._held.pop(message.gid)

    def _is_known(self, message: BeginPrepare | Prepare | StreamPrepare) -> bool:
        return self._prepared.get(message.gid) == message.end_lsn

    def _take_prepared(self, open_: OpenTransaction, message: Prepare | StreamPrepare) -> tuple[Event, ...]:
        if not open_.is_new:
            # It was delivered before a restart; only its decision is new.
            self._area.discard(open_.log)
            return ()
        # A transaction prepared before the restart was either decided before it too, or was prepared before two_phase
        # was enabled and is sent now because it is committed. Its decision follows soon and tells the two apart.
        if self._hands_on_prepared and message.prepare_lsn >= self._resumed_at:
            return (self._hand_on_prepared(open_, message),)
        repeated = self._held.pop(message.gid, None)
        if repeated is not None:
            self._area.discard(repeated.open.log)
        self._held[message.gid] = HeldTransaction(open_, message)
        return ()

    # Messages within a transaction

    def _relation(self, message: RelationMessage, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        self._appear(block, message)
        self._session_relations.describe(message, block.relations)
        return ()

    def _type(self, message: Type, lsn: Lsn) -> tuple[Event, ...]:
        self._appear(self._inside(message, lsn), message)
        self._session_relations.name_type(message)
        return ()

    def _origin(self, message: Origin, lsn: Lsn) -> tuple[Event, ...]:
        # The documentation allows several, although no server sends them; the last one counts.
        self._inside(message, lsn).origin = message
        return ()

    def _row(self, message: Insert | Update | Delete, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        relation = self._find(block, message, message.relation_id, lsn)
        new = None if isinstance(message, Delete) else message.new
        old = None if isinstance(message, Insert) else message.old
        for row in (new, old):
            if row is not None and len(row.kinds) != len(relation.names):
                raise refused(
                    message, lsn, block.xid, of_another_width(len(row.kinds), str(relation), len(relation.columns))
                )
        self._appear(block, message)
        self._add(block, message, lsn, relation)
        return ()

    def _truncate(self, message: Truncate, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        relations = [self._find(block, message, relation_id, lsn) for relation_id in message.relation_ids]
        self._appear(block, message)
        for relation in relations:
            single = message if len(relations) == 1 else replace(message, relation_ids=(relation.relation_id,))
            self._add(block, single, lsn, relation)
        return ()

    def _message(self, message: Message, lsn: Lsn) -> tuple[Event, ...]:
        if not message.transactional:
            # Its LSN is the end of its record, unlike that of any other change.
            if message.message_lsn <= self._resumed_at:
                return ()
            self._deliver(message.message_lsn)
            return (NonTransactionalMessage(lsn=lsn, message=message),)
        # It names the top-level transaction even if a subtransaction wrote it, so it reveals no subtransaction.
        self._add(self._inside(message, lsn), message, lsn, None)
        return ()

    def _appear(
        self, block: OpenTransaction, message: RelationMessage | Type | Insert | Update | Delete | Truncate
    ) -> None:
        if block.relations is not None:
            subxid = getattr(message, "xid", None)
            if subxid is not None:
                block.subtransactions.appear(subxid, len(block.log), len(block.relations))

    def _add(self, block: OpenTransaction, message: ChangeMessage, lsn: Lsn, relation: TableDescription | None) -> None:
        if not block.is_new:
            return
        if relation is not None:
            block.use(relation, len(block.log))
        self._area.append(block.log, Change(len(block.log), lsn, message, relation))

    def _find(
        self, block: OpenTransaction, message: Insert | Update | Delete | Truncate, relation_id: Oid, lsn: Lsn
    ) -> TableDescription:
        relation = self._session_relations.find(relation_id, block.relations)
        if relation is None:
            raise refused(message, lsn, block.xid, f"no Relation has described the table with OID {relation_id}")
        return relation

    # Delivery

    def _commit_open(
        self, open_: OpenTransaction, message: Commit | StreamCommit | CommitPrepared, gid: str | None
    ) -> tuple[Event, ...]:
        if message.commit_lsn < self._resumed_at:
            self._area.discard(open_.log)
            return ()
        self._deliver(message.end_lsn)
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
        )
        return (transaction,)

    def _hand_on_prepared(self, open_: OpenTransaction, message: Prepare | StreamPrepare) -> PreparedTransaction:
        self._prepared[message.gid] = message.end_lsn
        schema_changes = self._delivered_relations.deliver(open_.uses)
        self._undecided[message.gid] = schema_changes, open_.relations
        self._deliver(message.end_lsn)
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

    def _decide(self, message: CommitPrepared | RollbackPrepared, *, known: bool) -> Decision:
        commit_lsn: Lsn | None
        if isinstance(message, CommitPrepared):
            commit_lsn, end_lsn, timestamp = message.commit_lsn, message.end_lsn, message.commit_timestamp
        else:
            commit_lsn, end_lsn, timestamp = None, message.rollback_end_lsn, message.rollback_timestamp
        committed = commit_lsn is not None
        if known:
            del self._prepared[message.gid]
            schema_changes, relations = self._undecided.pop(message.gid, ((), None))
            if committed:
                self._adopt(relations)
            else:
                self._delivered_relations.take_back(schema_changes)
        self._deliver(end_lsn)
        return Decision(
            gid=message.gid,
            xid=message.xid,
            committed=committed,
            known=known,
            commit_lsn=commit_lsn,
            end_lsn=end_lsn,
            timestamp=timestamp,
        )

    def _deliver(self, lsn: Lsn) -> None:
        """Note that every transaction that took effect before a position is delivered or held."""
        self._delivered = max(self._delivered, lsn)
        held = (transaction.prepare.prepare_lsn for transaction in self._held.values())
        # `lsn`, not `delivered`: after a restart the server may still have to resend prepared transactions to hold.
        self._acknowledged = max(self._acknowledged, min((lsn, *held)))

    # The state that a message needs

    def _inside(self, message: AnyMessage, lsn: Lsn) -> OpenTransaction:
        if self._block is None:
            raise refused(message, lsn, None, "comes outside of transactions and stream segments")
        return self._block

    def _outside(self, message: AnyMessage, lsn: Lsn) -> None:
        if self._block is not None:
            raise refused(message, lsn, self._block.xid, "comes before the end of the transaction or stream segment")


# Each takes the messages of its tag.
_HANDLERS: dict[str, Callable[[Assembler, Any, Lsn], tuple[Event, ...]]] = {
    "B": Assembler._begin,
    "C": Assembler._commit,
    "b": Assembler._begin,
    "P": Assembler._prepare,
    "K": Assembler._commit_prepared,
    "r": Assembler._rollback_prepared,
    "S": Assembler._stream_start,
    "E": Assembler._stream_stop,
    "c": Assembler._stream_commit,
    "A": Assembler._stream_abort,
    "p": Assembler._stream_prepare,
    "R": Assembler._relation,
    "Y": Assembler._type,
    "O": Assembler._origin,
    "I": Assembler._row,
    "U": Assembler._row,
    "D": Assembler._row,
    "T": Assembler._truncate,
    "M": Assembler._message,
}
