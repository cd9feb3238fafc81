"""The transaction of each message of a chunk, found in columns where transactions are sent whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.loops.transactions import follow
from logicalrep.arrow.message_batch import MessageBatch, tag_mask
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.tags import BEGIN, IN_EVERY_SESSION, ORIGIN, TRUNCATE
from logicalrep_protocol import v1
from logicalrep_protocol.columnar import LocatedBatch, Session, locate_batch
from logicalrep_runtime.columnar.located import Bytes, Int64s
from logicalrep_runtime.scalars import TransactionId

_EVERYTHING = (1 << 64) - 1
_IN_COLUMNS = tag_mask(IN_EVERY_SESSION)


class UnsupportedError(Exception):
    """A message outside of transactions from which the session must be assembled."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True, slots=True)
class IndexedBatch:
    """The transactions of a chunk. Number 0 is open at its start; the others are counted by their Begin."""

    transaction_of: Int64s
    ordinals: Int64s
    """The number of changes before each message in its transaction."""
    in_range: NDArray[np.bool_]
    final_lsn: Int64s
    commit_timestamp: Int64s
    """Each transaction's commit time, in microseconds since 1970."""
    xid: Int64s
    origins: dict[int, str]
    """The origins of transactions that have one, by transaction number."""


class TransactionIndex:
    def __init__(self, start: int | None, end: int | None) -> None:
        self.start = 0 if start is None else int(start)
        self.end = _EVERYTHING if end is None else int(end)
        self._session = Session(version=1)
        # The transaction that the next chunk begins in: its columns, its origin, its changes so far.
        self._open: tuple[tuple[int, int, int], str | None, int] | None = None

    def supported(self, tags: Bytes) -> int:
        """Return the number of messages before the first, outside of a transaction, that cannot be read in columns."""
        unknown = np.flatnonzero(~_IN_COLUMNS.take(tags))
        return int(unknown[0]) if len(unknown) else len(tags)

    def refuse(self, index: int, tag: int) -> None:
        """Raise UnsupportedError for a message of the chunk, or TransactionError if it is within a transaction."""
        if self._open is not None:
            raise TransactionError(chr(tag), None, TransactionId(self._open[0][2]), "comes within a transaction")
        raise UnsupportedError(index)

    def next(self, messages: MessageBatch, batch: LocatedBatch | None = None) -> IndexedBatch:
        """Return the transactions of the next chunk. `batch` is the chunk if it has been located already."""
        tags = np.ascontiguousarray(messages.tags)
        begins = np.flatnonzero(tags == BEGIN)
        opened, opened_origin, carried = self._open or ((-1, 0, 0), None, 0)
        tables = np.array([_tables_of(messages.data(at)) for at in np.flatnonzero(tags == TRUNCATE).tolist()], np.int64)
        transaction_of, ordinals = np.empty(len(tags), np.int64), np.empty(len(tags), np.int64)
        wrong, is_open, changes = follow(tags, self._open is not None, carried, tables, transaction_of, ordinals)
        if wrong >= 0:
            raise TransactionError("message", None, None, "transactions do not begin and end in turn")
        origins = {} if opened_origin is None else {0: opened_origin}
        for at in np.flatnonzero(tags == ORIGIN).tolist():
            origin = v1.parse(messages.data(at))
            assert isinstance(origin, v1.Origin)
            origins[int(transaction_of[at])] = origin.name
        if batch is None:
            # Fixed-width integers have memory of their own, so the batch can be given back at once.
            with locate_batch(messages.array.take(pa.array(begins)), self._session) as batch:
                begins = np.arange(len(begins))
        final_lsn, commit_timestamp, xid = (
            np.concatenate((np.array([first], np.int64), integers(batch, name, begins)))
            for name, first in zip(("final_lsn", "commit_timestamp", "xid"), opened, strict=True)
        )
        unsigned = final_lsn.view(np.uint64)
        in_range = (unsigned >= np.uint64(self.start)) & (unsigned < np.uint64(self.end))
        run = IndexedBatch(
            transaction_of, ordinals, in_range.take(transaction_of), final_lsn, commit_timestamp, xid, origins
        )
        self._open = None
        if is_open:
            number = int(transaction_of[-1])
            columns = int(final_lsn[number]), int(commit_timestamp[number]), int(xid[number])
            self._open = columns, origins.get(number), changes
        return run


def _tables_of(data: bytes) -> int:
    truncate = v1.parse(data)
    assert isinstance(truncate, v1.Truncate)
    return len(truncate.relation_ids)


def integers(batch: LocatedBatch, name: str, rows: Int64s) -> Int64s:
    """Return a field of messages that all have it as int64: an LSN's 64 bits, or a time in microseconds since 1970."""
    if not len(rows):
        return np.empty(0, np.int64)
    values = batch.located.fixed[batch.numbers[name]][rows]
    return values.view(np.int64) if values.itemsize == 8 else values.view(np.uint32).astype(np.int64)
