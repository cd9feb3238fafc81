"""The assembler of transactions: messages in, committed transactions out, for any protocol version, without I/O.

A server may send a transaction whole, at its commit; in segments while it runs, between segments of other
transactions and rollbacks of subtransactions; or at its PREPARE TRANSACTION, to be decided later. The assembler
turns all of these into committed transactions, in the order of their commits.
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
    """A converter of a slot's messages into transactions.

    Close it, or use it as a context manager: undelivered changes may lie in temporary files. A message that raises
    TransactionError leaves the assembler unchanged.

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
            hand_on_prepared: deliver a prepared transaction at once as PreparedTransaction, and its Decision later.
                If false, it is held and delivered as a Transaction at its COMMIT PREPARED, or never.
            after: the `position` of an earlier assembler, whose deliveries are left out.
            relations: the earlier `relations`, so that only tables with a new description become schema changes.
            memory_limit: the memory for the changes of all open transactions, in bytes; the rest is stored on disk.
            directory: the folder for temporary files, by default the system's; not in memory (tmpfs).
        """
        self._area = SpillArea(memory_limit, directory)
        self._session_relations = Relations()
        self._deliveries = Deliveries(
            after or ResumeToken(), relations, self._session_relations, self._area, hand_on_prepared=hand_on_prepared
        )
        self.streams: dict[TransactionId, OpenTransaction] = {}
        # The transaction whose messages arrive: between Begin and Commit, Begin Prepare and Prepare, or in a segment.
        self._block: OpenTransaction | None = None

    def feed(self, message: AnyMessage, lsn: Lsn) -> tuple[Event, ...]:
        """Take the next message with its LSN; return the events that it completes, usually none.

        Raises:
            TransactionError: the message is out of order.
            OSError: a temporary file could not be written.
        """
        return HANDLERS[message.tag](self, message, lsn)

    def feed_rows(self, arrived: UnboundRows) -> int:
        """Take consecutive rows without `feed` for each; return the number of rows taken.

        It stops at the first row that is out of order; `feed` raises the row's error. Raises OSError as `feed`.
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

        The transactions are at or after `position`, and no other transaction or segment is open between their
        messages.
        """
        for message in descriptions:
            if isinstance(message, Type):
                self._session_relations.name_type(message)
            else:
                self._session_relations.describe(message, None)
        self._deliveries.deliver(end_lsn)

    def take_keepalive(self, lsn: Lsn) -> None:
        """Take a keepalive's LSN, before which the server has sent everything: `position` advances on an idle slot."""
        if self._block is None:
            self._deliveries.deliver(lsn)

    def reconnect(self) -> None:
        """Prepare for a new connection, which also needs a new Decoder.

        The server sends partly received transactions from their start, Relations again, and perhaps delivered
        transactions, which are left out.
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
        """The position to resume from once all returned events are safe."""
        return self._deliveries.position

    @property
    def relations(self) -> tuple[TableDescription, ...]:
        """The last description of each table in the delivered transactions."""
        return self._deliveries.relations

    @property
    def described(self) -> dict[Oid, TableDescription]:
        """The descriptions, by OID, for the next transaction that is sent whole."""
        return self._session_relations.all()

    @property
    def memory(self) -> int:
        """The estimated memory of the open transactions' changes, in bytes."""
        return self._area.memory

    def close(self) -> None:
        """Drop all undelivered changes."""
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
            # It has no changes: PostgreSQL 18 sends no Begin Prepare for it.
            empty = OpenTransaction(message.xid, self._area.open(), None)
            empty.is_new = not self._deliveries.is_known(message)
            return self._deliveries.prepare(empty, message)
        block = self._inside(message, lsn)
        if not isinstance(block.begin, BeginPrepare):
            raise refused(message, lsn, block.xid, "closes a transaction that no Begin Prepare opened")
        if (message.xid, message.gid) != (block.xid, block.begin.gid):
            announced = f"{block.xid}, {block.begin.gid!r}"
            reason = f"names transaction {message.xid}, {message.gid!r}, but Begin Prepare {announced}"
            raise refused(message, lsn, block.xid, reason)
        self._block = None
        return self._deliveries.prepare(block, message)

    # Transactions that are streamed

    def _stream_start(self, message: StreamStart, lsn: Lsn) -> tuple[Event, ...]:
        self._outside(message, lsn)
        stream = self.streams.get(message.xid)
        if message.first_segment:
            if stream is not None:
                # The server starts it over after a reconnection; no other message announces that.
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
        self._appear(block, message)
        block.describe(self._session_relations.describe(message, block.relations))
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
                    message, lsn, block.xid, width_reason(len(row.kinds), str(relation), len(relation.columns))
                )
        self._appear(block, message)
        self._add(block, message, lsn, relation)
        return ()

    def _truncate(self, message: Truncate, lsn: Lsn) -> tuple[Event, ...]:
        block = self._inside(message, lsn)
        relations = [self._find(block, message, relation_id, lsn) for relation_id in message.relation_ids]
        self._appear(block, message)
        block.note_truncate()
        for relation in relations:
            single = message if len(relations) == 1 else replace(message, relation_ids=(relation.relation_id,))
            self._add(block, single, lsn, relation)
        return ()

    def _message(self, message: Message, lsn: Lsn) -> tuple[Event, ...]:
        if not message.transactional:
            # Its LSN is the end of its record, unlike other changes' LSNs.
            if message.message_lsn <= self._deliveries.resumed_at:
                return ()
            self._deliveries.deliver(message.message_lsn)
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

    # The state that a message needs

    def _inside(self, message: AnyMessage, lsn: Lsn) -> OpenTransaction:
        if self._block is None:
            raise refused(message, lsn, None, "comes outside of transactions and stream segments")
        return self._block

    def _outside(self, message: AnyMessage, lsn: Lsn) -> None:
        if self._block is not None:
            raise refused(message, lsn, self._block.xid, "comes before the end of the transaction or stream segment")


# Each takes the messages of its tag.
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
