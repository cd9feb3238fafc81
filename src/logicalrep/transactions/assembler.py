"""The assembler of transactions: messages in, committed transactions out, for every protocol version.

A server may send a transaction whole, at its commit; in segments while it runs, between segments of other
transactions and rollbacks of subtransactions; or at its PREPARE TRANSACTION, before it is committed or rolled back. The
assembler turns all of these into committed transactions, in the order of their commits. It needs no connection, and
does no I/O except temporary files for large transactions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

from logicalrep.transactions.changes import Change, ChangeMessage
from logicalrep.transactions.deliveries import Deliveries
from logicalrep.transactions.errors import refused, width_reason
from logicalrep.transactions.open_transactions import OpenTransaction, UnboundRows
from logicalrep.transactions.relations import Relations, TableDescription
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.spill import DEFAULT_MEMORY_LIMIT, SpillArea
from logicalrep.transactions.transaction import Event, NonTransactionalMessage
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


class Assembler:
    """A converter of a slot's messages into transactions, for one thread.

    Close the assembler, or use it as a context manager: undelivered changes may be in temporary files. A message that
    raises TransactionError leaves the assembler unchanged.

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
        """Create an assembler for a slot.

        Args:
            hand_on_prepared: whether to return a prepared transaction at once, as PreparedTransaction, and its Decision
                later. If false, the assembler holds the transaction until its COMMIT PREPARED, and returns a
                Transaction; after ROLLBACK PREPARED it returns nothing.
            after: the `position` of an earlier assembler; transactions that it has delivered are not returned again.
            relations: the `relations` of the earlier assembler: only other descriptions count as schema changes.
            memory_limit: the most memory for the changes of all open transactions, in bytes; the rest is on disk.
            directory: the folder for temporary files, by default the system's; choose one on a disk, not a tmpfs.
        """
        self._area = SpillArea(memory_limit, directory)
        self._session_relations = Relations()
        self._deliveries = Deliveries(
            after or ResumeToken(), relations, self._session_relations, self._area, hand_on_prepared=hand_on_prepared
        )
        # The streamed transactions that have not ended, by the xid of the top-level transaction.
        self.streams: dict[TransactionId, OpenTransaction] = {}
        # The transaction whose messages arrive: between Begin and Commit, Begin Prepare and Prepare, or in a segment.
        self._block: OpenTransaction | None = None

    def feed(self, message: AnyMessage, lsn: Lsn) -> tuple[Event, ...]:
        """Take the next message with its LSN; return the events that it completes, usually none.

        An event is a transaction, a prepared transaction, its decision, or a message outside of transactions.

        Raises:
            TransactionError: the message is out of order.
            OSError: a temporary file could not be written.
        """
        return HANDLERS[message.tag](self, message, lsn)

    def feed_rows(self, arrived: UnboundRows) -> int:
        """Take consecutive row messages in place of a `feed` for each; return the number of rows taken.

        The first row that is out of order, and all after it, are not taken: `feed` raises the error of that row. Raises
        OSError as `feed` does.
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
        """Take the Relations and Types of whole transactions whose rows the caller reads itself, up to `end_lsn`.

        The caller ensures that the transactions are at or after `position`, and that no transaction or segment is open.
        """
        for message in descriptions:
            if isinstance(message, Type):
                self._session_relations.name_type(message)
            else:
                self._session_relations.describe(message, None)
        self._deliveries.deliver(end_lsn)

    def take_keepalive(self, lsn: Lsn) -> None:
        """Advance `position` on an idle slot to the LSN of a keepalive, before which the server has sent everything."""
        if self._block is None:
            self._deliveries.deliver(lsn)

    def reconnect(self) -> None:
        """Drop the state of a lost connection; the new connection also needs a new Decoder.

        On the new connection the server sends partly received transactions from their start, each Relation again, and
        perhaps transactions that were delivered: the assembler does not return them again.
        """
        if self._block is not None and self._block.begin is not None:
            self._area.discard(self._block.log)
        self._block = None
        for stream in self.streams.values():
            self._area.discard(stream.log)
        self.streams.clear()
        self._session_relations.clear()
        self._deliveries.reconnect()

    @property
    def position(self) -> ResumeToken:
        """The position to resume from, once the caller has stored all returned events."""
        return self._deliveries.position

    @property
    def relations(self) -> tuple[TableDescription, ...]:
        """The last description of each table in the delivered transactions."""
        return self._deliveries.relations

    @property
    def described(self) -> dict[Oid, TableDescription]:
        """The current descriptions, by OID: the next whole transaction may use them without a new Relation."""
        return self._session_relations.all()

    @property
    def memory(self) -> int:
        """The estimated memory of the open transactions' changes, in bytes."""
        return self._area.memory

    def close(self) -> None:
        """Drop all undelivered changes, and delete their temporary files."""
        self._block = None
        self.streams.clear()
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
            block.is_new = message.final_lsn >= self._deliveries.resumed_at
        else:
            block.is_new = not self._deliveries.is_known(message)
        return ()

    def _commit(self, message: Commit, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        if not isinstance(block.begin, Begin):
            raise refused(message, lsn, block.xid, "closes a transaction that no Begin opened")
        if message.commit_lsn != block.begin.final_lsn:
            reason = f"commits at {message.commit_lsn}, but Begin announced {block.begin.final_lsn}"
            raise refused(message, lsn, block.xid, reason)
        self._block = None
        return self._deliveries.commit(block, message, gid=None)

    def _prepare(self, message: Prepare, lsn: Lsn) -> tuple[Event, ...]:
        if self._block is None:
            # For a prepared transaction without changes PostgreSQL 18 sends Prepare without Begin Prepare.
            empty = OpenTransaction(message.xid, self._area.open(), None)
            empty.is_new = not self._deliveries.is_known(message)
            return self._deliveries.prepare(empty, message)
        block = self._inside(message, lsn)
        if not isinstance(block.begin, BeginPrepare):
            raise refused(message, lsn, block.xid, "closes a transaction that no Begin Prepare opened")
        if (message.xid, message.gid) != (block.xid, block.begin.gid):
            announced = f"{block.xid}, {block.begin.gid!r}"
            reason = f"names transaction {message.xid}, {message.gid!r}, but Begin Prepare named {announced}"
            raise refused(message, lsn, block.xid, reason)
        self._block = None
        return self._deliveries.prepare(block, message)

    # Transactions that are streamed

    def _stream_start(self, message: StreamStart, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        stream = self.streams.get(message.xid)
        if message.first_segment:
            if stream is not None:
                # After a reconnection the server sends the transaction from its start; only this flag announces it.
                self._area.discard(stream.log)
            stream = self.streams[message.xid] = OpenTransaction(message.xid, self._area.open(), None)
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
        self._deliveries.adopt(stream.relations)
        return self._deliveries.commit(stream, message, gid=None)

    def _stream_prepare(self, message: StreamPrepare, lsn: Lsn) -> tuple[Event, ...]:
        stream = self._end_stream(message, lsn)
        stream.is_new = not self._deliveries.is_known(message)
        return self._deliveries.prepare(stream, message)

    def _stream_abort(self, message: StreamAbort, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        stream = self.streams.get(message.xid)
        if stream is None:
            return ()
        if message.subxid == message.xid:
            del self.streams[message.xid]
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
        stream = self.streams.pop(message.xid, None)
        if stream is None:
            raise refused(message, lsn, message.xid, "ends a transaction that was not streamed")
        return stream

    # Decisions on prepared transactions

    def _commit_prepared(self, message: CommitPrepared, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        return self._deliveries.commit_prepared(message)

    def _rollback_prepared(self, message: RollbackPrepared, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        return self._deliveries.roll_back_prepared(message)

    # Messages within a transaction

    def _relation(self, message: RelationMessage, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        self._note_subtransaction(block, message)
        block.describe(self._session_relations.describe(message, block.relations))
        return ()

    def _type(self, message: Type, lsn: Lsn) -> tuple[Event, ...]:
        self._note_subtransaction(self._inside(message, lsn), message)
        self._session_relations.name_type(message)
        return ()

    def _origin(self, message: Origin, lsn: Lsn) -> tuple[Event, ...]:
        # The documentation allows several Origins, although no server sends them: the last one counts.
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
                    message, lsn, block.xid, width_reason(len(row.kinds), str(relation), len(relation.columns))
                )
        self._note_subtransaction(block, message)
        self._add(block, message, lsn, relation)
        return ()

    def _truncate(self, message: Truncate, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        relations = [self._find(block, message, relation_id, lsn) for relation_id in message.relation_ids]
        self._note_subtransaction(block, message)
        block.note_truncate()
        for relation in relations:
            single = message if len(relations) == 1 else replace(message, relation_ids=(relation.relation_id,))
            self._add(block, single, lsn, relation)
        return ()

    def _message(self, message: Message, lsn: Lsn) -> tuple[Event, ...]:
        if not message.transactional:
            # Its LSN is the end of its WAL record; the LSN of any other change is the start.
            if message.message_lsn <= self._deliveries.resumed_at:
                return ()
            self._deliveries.deliver(message.message_lsn)
            return (NonTransactionalMessage(lsn=lsn, message=message),)
        # The message has the xid of the top-level transaction even if a subtransaction wrote it.
        self._add(self._inside(message, lsn), message, lsn, None)
        return ()

    def _note_subtransaction(
        self, block: OpenTransaction, message: RelationMessage | Type | Insert | Update | Delete | Truncate
    ) -> None:
        """Record where a subtransaction of a streamed transaction begins: its rollback removes changes from there."""
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

    # The state that a message needs

    def _inside(self, message: AnyMessage, lsn: Lsn) -> OpenTransaction:
        if self._block is None:
            raise refused(message, lsn, None, "comes outside of transactions and stream segments")
        return self._block

    def _outside(self, message: AnyMessage, lsn: Lsn) -> None:
        if self._block is not None:
            raise refused(message, lsn, self._block.xid, "comes before the end of the transaction or stream segment")


# The methods of `feed`, by the tag of the messages that they take.
HANDLERS: dict[str, Callable[[Assembler, Any, Lsn], tuple[Event, ...]]] = {
    "B": Assembler._begin,
    "b": Assembler._begin,
    "C": Assembler._commit,
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
