"""Messages written from known facts, as a server sends whole transactions in version 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.arrow.packed_rows import PackedRows
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import BINARY, TEXT
from logicalrep.transactions.transaction import NonTransactionalMessage, Transaction
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import TupleData
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz, TransactionId


def preamble(relations: Iterable[TableDescription]) -> Iterator[tuple[Lsn, bytes]]:
    """Yield an empty transaction that describes tables, for a reader that starts in a session's middle."""
    yield Lsn(1), v1.Begin(final_lsn=Lsn(1), commit_timestamp=TimestampTz(0), xid=TransactionId(0)).build()
    for relation in relations:
        yield from _description(relation)
    yield Lsn(1), v1.Commit(commit_lsn=Lsn(1), end_lsn=Lsn(1), commit_timestamp=TimestampTz(0)).build()


def sent_whole(
    transaction: Transaction, descriptions: dict[Oid, TableDescription], texts: Texts | None = None
) -> Iterator[tuple[Lsn, bytes] | MessageBatch]:
    """Yield a transaction from Begin to Commit; describes tables missing in `descriptions`, and adds them.

    `texts` converts values to UTF-8, for a session in another encoding. Only Commit Prepared has the gid.
    """
    commit_lsn, timestamp = transaction.commit_lsn, transaction.commit_timestamp
    yield commit_lsn, v1.Begin(final_lsn=commit_lsn, commit_timestamp=timestamp, xid=transaction.xid).build()
    if transaction.origin is not None:
        origin_lsn = transaction.origin_lsn or Lsn(0)
        yield commit_lsn, v1.Origin(origin_lsn=origin_lsn, name=transaction.origin).build()
    described: dict[Oid, TableDescription] = {}
    for part in transaction.changes.messages():
        if isinstance(part, tuple):
            lsn, data, relation = part
            if relation is not None:
                yield from _add_description(relation, described, transaction.partitions)
            yield lsn, data if relation is None or texts is None else _as_texts(data, relation, texts)
        else:
            assert isinstance(part, PackedRows)
            start = 0
            for first, table in part.tables():
                added = [*_add_description(part.relations[table], described, transaction.partitions)]
                if added and start < first:
                    yield part.batch[start:first]
                    start = first
                yield from added
            yield part.batch[start:]
    descriptions |= described
    end_lsn = transaction.end_lsn
    yield commit_lsn, v1.Commit(commit_lsn=commit_lsn, end_lsn=end_lsn, commit_timestamp=timestamp).build()


def alone(event: NonTransactionalMessage) -> tuple[Lsn, bytes]:
    message = event.message
    written = v1.Message(
        flags=message.flags, message_lsn=message.message_lsn, prefix=message.prefix, content=message.content
    )
    return event.lsn, written.build()


def _as_texts(data: bytes, relation: TableDescription, texts: Texts) -> bytes:

    def as_texts(row: TupleData) -> TupleData:
        kinds = row.kinds.replace(bytes([BINARY]), bytes([TEXT]))
        return TupleData(kinds=kinds, values=tuple(texts.of(relation, row)))

    message = v1.parse(data)
    if isinstance(message, v1.Insert | v1.Update):
        message = replace(message, new=as_texts(message.new))
    if isinstance(message, v1.Update | v1.Delete) and message.old is not None:
        message = replace(message, old=as_texts(message.old))
    return message.build()


def _add_description(
    relation: TableDescription,
    descriptions: dict[Oid, TableDescription],
    partitions: Mapping[Oid, Sequence[TableDescription]],
) -> Iterator[tuple[Lsn, bytes]]:
    """Yield a table's description if unknown, directly before its rows, and its partitions' directly after it."""
    oid = relation.relation_id
    if descriptions.get(oid) is not relation:
        yield from _description(relation)
        for partition in () if oid in descriptions else partitions.get(oid, ()):
            yield from _description(partition)
        descriptions[oid] = relation


def _description(relation: TableDescription) -> Iterator[tuple[Lsn, bytes]]:
    for type_ in relation.types:
        if type_ is not None:
            yield Lsn(1), type_.build()
    described = v1.Relation(
        relation_id=relation.relation_id,
        namespace=relation.schema,
        name=relation.name,
        replica_identity=relation.replica_identity,
        columns=relation.columns,
    )
    yield Lsn(1), described.build()


def inserted(
    relation: TableDescription, inserts: Iterable[MessageBatch], commit_lsn: Lsn, commit_timestamp: TimestampTz
) -> Iterator[tuple[Lsn, bytes] | MessageBatch]:
    yield from preamble([relation])
    begin = v1.Begin(final_lsn=commit_lsn, commit_timestamp=commit_timestamp, xid=TransactionId(0))
    yield commit_lsn, begin.build()
    yield from inserts
    end_lsn = Lsn(commit_lsn + 1)
    commit = v1.Commit(commit_lsn=commit_lsn, end_lsn=end_lsn, commit_timestamp=commit_timestamp)
    yield commit_lsn, commit.build()
