"""The changes of tables in batches of transactions sent whole (see `batch_intake`). Needs `logicalrep[arrow]`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.arrow.batch_intake import WholeTransactions
from logicalrep.arrow.batching import Batching
from logicalrep.arrow.changes.change_batch import UNREADABLE, ChangeBatch
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.arrow.table.table_decoder import DecodedTable, Rows, TableDecoder
from logicalrep.arrow.transaction_index import IndexedBatch, TransactionIndex
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import DELETE, TRUNCATE, UNCHANGED, WHOLE_ROW
from logicalrep_protocol.columnar import Session

_MOST_MESSAGES = 10_000
_MOST_VALUES = 1 << 22
"""The most values of a batch: arrays stay small, however wide a table is."""


class ChangeDecoder:
    def __init__(self) -> None:
        self._tables = TableDecoder(Session(version=1), typed=False)
        self._runs = TransactionIndex(None, None)
        # The first of the last Relation messages that have no change between them.
        self._first: SentRelation | None = None

    def changes(self, transactions: WholeTransactions) -> Iterator[TableChanges]:
        for messages in Batching(iter(transactions.batches), _MOST_MESSAGES, None):
            yield from self.decode(messages)

    def decode(self, messages: MessageBatch) -> list[TableChanges]:
        """The messages may end within a transaction. Raises TransactionError and DecodeError."""
        stop = self._runs.supported(messages.tags)
        decoded = self._decoded(messages[:stop]) if stop else []
        if stop < len(messages):
            self._runs.refuse(stop, int(messages.tags[stop]))
        return decoded

    def _decoded(self, messages: MessageBatch) -> list[TableChanges]:
        run = self._runs.next(messages)
        tables = self._tables.decode(messages.array)
        batches: dict[int, list[tuple[int, ChangeBatch]]] = {}
        relations: dict[int, list[SentRelation]] = {}
        for sent in self._relations(run):
            relations.setdefault(sent.relation_id, []).append(sent)
        truncates = self._truncates(run)
        for oid, at, batch in truncates:
            batches.setdefault(oid, []).append((at, batch))
        for table in tables:
            oid = int(table.relation.relation_id)
            cuts = [at for truncated_oid, at, _ in truncates if truncated_oid == oid]
            batches.setdefault(oid, []).extend(_split_at_cuts(table, run, cuts))
        return [
            TableChanges(
                relations.get(oid, ()),
                [batch for _, batch in sorted(batches.get(oid, ()), key=lambda entry: entry[0])],
            )
            for oid in dict.fromkeys([*relations, *batches])
        ]

    def _relations(self, run: IndexedBatch) -> Iterator[SentRelation]:
        """Yield the Relation messages; a partitioned table's message again with each partition that follows."""
        # A TRUNCATE describes each of its tables, which are no partitions of each other.
        truncates = {(int(run.transaction_of[at]), int(run.ordinals[at])) for at in self._tables.truncated}
        for at, relation in self._tables.described.items():
            xid = int(run.xid[run.transaction_of[at]])
            # A preamble, which has no id, repeats descriptions that were sent elsewhere.
            if not xid:
                continue
            sent = SentRelation.of(relation, commit_lsn=int(_lsns(run, at)), ordinal=int(run.ordinals[at]), xid=xid)
            first = self._first
            if first is None or (first.commit_lsn, first.ordinal) != (sent.commit_lsn, sent.ordinal):
                self._first = first = sent
            if sent.relation_id != first.relation_id and (int(run.transaction_of[at]), sent.ordinal) not in truncates:
                yield replace(first, partition=sent.relation_id)
            yield sent

    def _truncates(self, run: IndexedBatch) -> list[tuple[int, int, ChangeBatch]]:
        truncates = []
        for at, relations in self._tables.truncated.items():
            for number, relation in enumerate(relations):
                positions = [np.array([value], np.int64) for value in _position(run, at)]
                positions[1] += number
                nothing = [pa.nulls(1, pa.string())] * len(relation.names)
                ops = np.array([TRUNCATE], np.uint8)
                batch = ChangeBatch.of(relation, ops, np.zeros(1, np.uint8), positions, None, nothing, nothing)
                truncates.append((int(relation.relation_id), at, batch))
        return truncates


def _lsns(run: IndexedBatch, at: int | NDArray[np.int64]) -> NDArray[np.int64]:
    return run.final_lsn[run.transaction_of[at]]


def _position(run: IndexedBatch, at: int | NDArray[np.int64]) -> list[NDArray[np.int64]]:
    transaction = run.transaction_of[at]
    return [run.final_lsn[transaction], run.ordinals[at], run.commit_timestamp[transaction], run.xid[transaction]]


def _split_at_cuts(table: DecodedTable, run: IndexedBatch, cuts: list[int]) -> Iterator[tuple[int, ChangeBatch]]:
    rows = table.rows.to_numpy(zero_copy_only=False)
    whole = _batch(table, rows, run)
    most = max(_MOST_VALUES // max(len(table.relation.names), 1), 1)
    bounds = {0, len(rows), *np.searchsorted(rows, cuts).tolist(), *range(0, len(rows), most)}
    starts = sorted(bounds)
    for start, stop in pairwise(starts):
        yield int(rows[start]), whole.slice(start, stop - start) if stop - start < len(rows) else whole


def _batch(table: DecodedTable, rows: NDArray[np.int64], run: IndexedBatch) -> ChangeBatch:
    ops = table.tag_codes
    positions = _position(run, rows)
    new, unsent = _with_old(table, ops != DELETE, table.old_kind_codes == WHOLE_ROW)
    if table.old.unfit or table.new.unfit:
        ops, unsent = _unreadable(table.relation, (table.old, table.new), positions[0], ops)
    columns = table.old.values.columns
    return ChangeBatch.of(table.relation, ops, table.old_kind_codes, positions, unsent, columns, new)


def _with_old(
    table: DecodedTable, has_new: NDArray[np.bool_], is_whole: NDArray[np.bool_]
) -> tuple[list[pa.Array], NDArray[np.bool_] | None]:
    """Return the new values, with unsent values taken from whole old rows; and which values were not sent at all."""
    columns, unsent = list(table.new.values.columns), None
    for index, column in enumerate(columns):
        if not column.null_count:
            continue
        states = table.new.states.column(index).to_numpy(zero_copy_only=False)
        is_unsent = (states == UNCHANGED) & has_new
        if not is_unsent.any():
            continue
        columns[index] = pc.if_else(pa.array(is_unsent & is_whole), table.old.values.column(index), column)
        if unsent is None:
            unsent = np.zeros((len(has_new), len(columns)), bool)
        unsent[:, index] = is_unsent & ~is_whole
    return columns, unsent


def _unreadable(
    relation: TableDescription, sides: tuple[Rows, Rows], lsns: NDArray[np.int64], ops: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Set the op UNREADABLE for all changes of transactions with a value that is not text; `unsent` has its columns."""
    unsent = np.zeros((len(ops), len(relation.names)), bool)
    for rows in sides:
        for name, texts in rows.unfit.items():
            unsent[np.isin(lsns, lsns[[*texts]]), relation.names.index(name)] = True
    is_one = unsent.any(axis=1)
    return np.where(is_one, UNREADABLE, ops).astype(np.uint8), unsent
