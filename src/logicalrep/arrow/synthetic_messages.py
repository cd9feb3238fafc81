"""Messages written from known facts, as a server sends whole transactions in version 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.arrow.packed_rows import PackedRows
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.transaction import Transaction
from logicalrep_protocol import v1
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz, TransactionId


def preamble(relations: Iterable[TableDescription]) -> Iterator[tuple[Lsn, bytes]]:
    """Yield an empty transaction that describes tables, for a reader that goes on from a session's middle."""
    yield Lsn(1), v1.Begin(final_lsn=Lsn(1), commit_timestamp=TimestampTz(0), xid=TransactionId(0)).build()
    for relation in relations:
        yield from _description(relation)
    yield Lsn(1), v1.Commit(commit_lsn=Lsn(1), end_lsn=Lsn(1), commit_timestamp=TimestampTz(0)).build()


def sent_whole(
    transaction: Transaction, known: dict[Oid, TableDescription]
) -> Iterator[tuple[Lsn, bytes] | MessageBatch]:
    """Yield a transaction's messages from Begin to Commit, with the descriptions of tables that are not `known` so.

    `known` gets these descriptions. The gid is not among them: only Commit Prepared has it.
    """
    commit_lsn, moment = transaction.commit_lsn, transaction.commit_timestamp
    yield commit_lsn, v1.Begin(final_lsn=commit_lsn, commit_timestamp=moment, xid=transaction.xid).build()
    if transaction.origin is not None:
        origin_lsn = transaction.origin_lsn or Lsn(0)
        yield commit_lsn, v1.Origin(origin_lsn=origin_lsn, name=transaction.origin).build()
    for part in transaction.changes.messages():
        relations = [part[2]] if isinstance(part, tuple) else [part.relations[table] for _, table in part.tables()]
        for relation in relations:
            if relation is not None and known.get(relation.relation_id) is not relation:
                known[relation.relation_id] = relation
                yield from _description(relation)
        if isinstance(part, tuple):
            yield part[:2]
        else:
            assert isinstance(part, PackedRows)
            yield part.batch
    end_lsn = transaction.end_lsn
    yield commit_lsn, v1.Commit(commit_lsn=commit_lsn, end_lsn=end_lsn, commit_timestamp=moment).build()


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
    """Yield a transaction that has inserted rows of one table, which is described first."""
    yield from preamble([relation])
    begin = v1.Begin(final_lsn=commit_lsn, commit_timestamp=commit_timestamp, xid=TransactionId(0))
    yield commit_lsn, begin.build()
    yield from inserts
    end_lsn = Lsn(commit_lsn + 1)
    commit = v1.Commit(commit_lsn=commit_lsn, end_lsn=end_lsn, commit_timestamp=commit_timestamp)
    yield commit_lsn, commit.build()
