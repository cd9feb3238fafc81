"""Messages for tests in few words, as a server of each kind would send them."""

from __future__ import annotations

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v1, v2, v3
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Event, Transaction
from logicalrep_protocol.v1 import Binary, Cell, Column, NullValue, ReplicaIdentity, Text, TupleData, UnchangedToast
from logicalrep_protocol.versions import AnyMessage

U = UnchangedToast()
TABLE = Oid(16400)


def row(*values: str | bytes | Cell | None) -> TupleData:
    """Return a tuple: text for str, binary format for bytes, NULL for None, U for unchanged."""
    cells: list[Cell] = []
    for value in values:
        if value is None:
            cells.append(NullValue())
        elif isinstance(value, str):
            cells.append(Text(value.encode()))
        elif isinstance(value, bytes):
            cells.append(Binary(value))
        else:
            cells.append(value)
    return TupleData.of(*cells)


def columns(*names: str, key: str = "id") -> tuple[Column, ...]:
    """Return columns of type text; `*` as key flags all."""
    return tuple(Column(flags=int(key in (name, "*")), name=name, type_id=Oid(25), type_modifier=-1) for name in names)


def relation(*names: str, oid: int = TABLE, identity: str = "d", name: str = "t", schema: str = "s") -> v1.Relation:
    return v1.Relation(
        relation_id=Oid(oid),
        namespace=schema,
        name=name,
        replica_identity=ReplicaIdentity(identity),
        columns=columns(*names, key="*" if identity == "f" else "id"),
    )


def streamed_relation(xid: int, *names: str, oid: int = TABLE, identity: str = "d") -> v2.Relation:
    return v2.Relation(
        xid=TransactionId(xid),
        relation_id=Oid(oid),
        namespace="s",
        name="t",
        replica_identity=v2.ReplicaIdentity(identity),
        columns=columns(*names, key="*" if identity == "f" else "id"),
    )


def insert(*values: str | bytes | Cell | None, oid: int = TABLE) -> v1.Insert:
    return v1.Insert(relation_id=Oid(oid), new=row(*values))


def streamed_insert(xid: int, *values: str | bytes | Cell | None, oid: int = TABLE) -> v2.Insert:
    return v2.Insert(xid=TransactionId(xid), relation_id=Oid(oid), new=row(*values))


def begin(xid: int, lsn: int) -> v1.Begin:
    return v1.Begin(final_lsn=Lsn(lsn), commit_timestamp=TimestampTz(lsn), xid=TransactionId(xid))


def commit(lsn: int) -> v1.Commit:
    return v1.Commit(commit_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), commit_timestamp=TimestampTz(lsn))


def start(xid: int, *, first: bool = False) -> v2.StreamStart:
    return v2.StreamStart(xid=TransactionId(xid), first_segment=first)


STOP = v2.StreamStop()


def stream_commit(xid: int, lsn: int) -> v2.StreamCommit:
    return v2.StreamCommit(
        xid=TransactionId(xid), commit_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), commit_timestamp=TimestampTz(lsn)
    )


def stream_abort(xid: int, subxid: int | None = None) -> v2.StreamAbort:
    return v2.StreamAbort(xid=TransactionId(xid), subxid=TransactionId(subxid or xid))


def begin_prepare(xid: int, gid: str, lsn: int) -> v3.BeginPrepare:
    return v3.BeginPrepare(
        prepare_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), prepare_timestamp=TimestampTz(lsn), xid=TransactionId(xid), gid=gid
    )


def prepare(xid: int, gid: str, lsn: int) -> v3.Prepare:
    return v3.Prepare(
        prepare_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), prepare_timestamp=TimestampTz(lsn), xid=TransactionId(xid), gid=gid
    )


def stream_prepare(xid: int, gid: str, lsn: int) -> v3.StreamPrepare:
    return v3.StreamPrepare(
        prepare_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), prepare_timestamp=TimestampTz(lsn), xid=TransactionId(xid), gid=gid
    )


def commit_prepared(xid: int, gid: str, lsn: int) -> v3.CommitPrepared:
    return v3.CommitPrepared(
        commit_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), commit_timestamp=TimestampTz(lsn), xid=TransactionId(xid), gid=gid
    )


def rollback_prepared(xid: int, gid: str, prepared: int, lsn: int) -> v3.RollbackPrepared:
    return v3.RollbackPrepared(
        prepare_end_lsn=Lsn(prepared + 8),
        rollback_end_lsn=Lsn(lsn + 8),
        prepare_timestamp=TimestampTz(prepared),
        rollback_timestamp=TimestampTz(lsn),
        xid=TransactionId(xid),
        gid=gid,
    )


def message(content: bytes, *, lsn: int = 1, transactional: bool = True, xid: int | None = None) -> v2.Message:
    return v2.Message(
        xid=None if xid is None else TransactionId(xid),
        flags=int(transactional),
        message_lsn=Lsn(lsn),
        prefix="p",
        content=content,
    )


def feed(assembler: Assembler, *messages: AnyMessage, lsn: int = 1) -> list[Event]:
    """Return the events from these messages."""
    return [event for message in messages for event in assembler.feed(message, Lsn(lsn))]


def only_transaction(events: list[Event]) -> Transaction:
    """Return the only event, a transaction."""
    [transaction] = events
    assert isinstance(transaction, Transaction)
    return transaction


def ids(transaction: Transaction) -> list[str]:
    """Return the first value of each new row, and the content of each message."""
    result = []
    for change in transaction.changes:
        message = change.message
        if isinstance(message, v1.Insert | v2.Insert):
            result.append((message.new.values[0] or b"NULL").decode())
        elif isinstance(message, v1.Message | v2.Message):
            result.append(message.content.decode())
        else:
            result.append(change.op)
    return result
