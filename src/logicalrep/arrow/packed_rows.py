"""Runs of row changes within a transaction, stored as the bytes of their messages.

A transaction that is streamed, or held until it is decided, consists almost entirely of rows. The assembler must
know the table, the subtransaction and the number of values of each row; the values themselves are read only once the
transaction has committed. Needs `logicalrep[arrow]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import ROW_CHANGE, MessageBatch, copied
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.spill import XID
from logicalrep.transactions.tags import DELETE
from logicalrep_protocol.columnar import LocatedBatch, RowDecodeError, Session, locate_batch
from logicalrep_runtime.scalars import Lsn, Oid, TransactionId

_SCHEMA = pa.schema({"lsn": pa.int64(), "relation_id": pa.int64(), "message": pa.binary()})


@dataclass(frozen=True, slots=True)
class PackedRows:
    batch: MessageBatch
    relation_ids: NDArray[np.int64]
    relations: Mapping[Oid, TableDescription]

    def __len__(self) -> int:
        return len(self.batch)

    def __iter__(self) -> Iterator[tuple[Lsn, bytes, TableDescription]]:
        for (lsn, data), relation_id in zip(self.batch, self.relation_ids.tolist(), strict=True):
            yield Lsn(lsn), data, self.relations[relation_id]

    def __getitem__(self, part: slice) -> PackedRows:
        return PackedRows(self.batch[part], self.relation_ids[part], self.relations)

    @property
    def memory(self) -> int:
        arrays = self.batch.lsns, self.batch.tags, self.relation_ids
        return self.batch.size + 4 * len(self) + sum(array.nbytes for array in arrays)

    def tables(self) -> list[tuple[int, Oid]]:
        relation_ids, firsts = np.unique(self.relation_ids, return_index=True)
        return sorted(zip(firsts.tolist(), map(Oid, relation_ids.tolist()), strict=True))

    def chunks(self, size: int) -> Iterator[PackedRows]:
        ends = self.batch.ends
        start = 0
        while start < len(self):
            previous_end = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, previous_end + size, "right")), start + 1)
            yield self[start:stop]
            start = stop

    def dump(self) -> memoryview:
        arrays = [pa.array(self.batch.lsns), pa.array(self.relation_ids), self.batch.array]
        return memoryview(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA).serialize())

    @classmethod
    def load(cls, data: bytes, relations: Mapping[Oid, TableDescription]) -> PackedRows:
        lsns, relation_ids, messages = pa.ipc.read_record_batch(pa.py_buffer(data), _SCHEMA).columns
        return cls(MessageBatch.of(lsns.to_numpy(), messages), relation_ids.to_numpy(), relations)


@dataclass(frozen=True, slots=True)
class ArrivedRows:
    """Row messages that are not yet bound to their tables' descriptions; arrays have an item for each message."""

    batch: MessageBatch
    relation_ids: NDArray[np.int64]
    widths: NDArray[np.int64]
    xids: NDArray[np.int64] | None

    def bound(self, find: Callable[[Oid], TableDescription | None]) -> PackedRows:
        """Bind the rows to their tables' descriptions, up to the first whose description is unknown or does not fit."""
        tables, table_of = np.unique(self.relation_ids, return_inverse=True)
        descriptions = {Oid(relation_id): find(Oid(relation_id)) for relation_id in tables.tolist()}
        columns = np.array([-1 if relation is None else len(relation.columns) for relation in descriptions.values()])
        relations = {relation_id: relation for relation_id, relation in descriptions.items() if relation is not None}
        count = _leading(columns[table_of] == self.widths)
        return PackedRows(self.batch[:count], self.relation_ids[:count], relations)

    def subtransactions(self, count: int) -> Iterator[tuple[int, TransactionId]]:
        """Yield the index and xid of each of `count` rows whose subtransaction differs from the previous row's."""
        if self.xids is not None:
            for first in np.flatnonzero(np.diff(self.xids[:count], prepend=-1)).tolist():
                yield first, TransactionId(self.xids[first])


def rows_from(batch: MessageBatch, at: int, session: Session) -> ArrivedRows | None:
    """Return the rows from a message up to the first invalid row; None if the first is invalid."""
    part = batch[at : at + _leading(ROW_CHANGE.take(batch.tags[at:]))]
    try:
        with locate_batch(part.array, session) as walk:
            widths, old_widths = _widths(walk, "new"), _widths(walk, "old")
    except RowDecodeError as error:
        return rows_from(batch[: at + error.row], at, session) if error.row else None
    np.copyto(widths, old_widths, where=part.tags == DELETE)
    even = _leading((old_widths == widths) | (_fixed(walk, "old_kind") == 0))
    if not even:
        return None
    rows = copied(part[:even], without=XID) if session.streaming else copied(part[:even])
    xids = _fixed(walk, "xid") if session.streaming else None
    return ArrivedRows(rows, _fixed(walk, "relation_id")[:even], widths[:even], xids)


def _leading(are: NDArray[np.bool_]) -> int:
    failures = np.flatnonzero(~are)
    return int(failures[0]) if len(failures) else len(are)


def _fixed(walk: LocatedBatch, name: str) -> NDArray[np.int64]:
    """Return a non-negative field's integers, 0 where a message has no such field."""
    values = walk.located.fixed.get(walk.numbers[name])
    if values is None:
        return np.zeros(walk.located.count, np.int64)
    return values.view(f"u{values.itemsize}").astype(np.int64)


def _widths(walk: LocatedBatch, name: str) -> NDArray[np.int64]:
    cells = walk.located.cells.get(walk.numbers[name])
    return np.zeros(walk.located.count, np.int64) if cells is None else np.diff(cells.offsets).astype(np.int64)
