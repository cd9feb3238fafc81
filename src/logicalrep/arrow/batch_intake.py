"""Committed transactions as message batches again, so that their rows can be made in columns.

Most transactions are sent whole, from Begin to Commit with nothing else in between: there is nothing to assemble, and
their messages pass unchanged, those of many transactions at once. Streamed and prepared transactions, and those too
large to be kept until they commit, go through the assembler, runs of rows together; if they are large, they come out as
the messages of a transaction that was sent whole. Small ones come out as events, since arrays do not pay for a few
messages. Needs `logicalrep[arrow]`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import (
    KNOWN,
    ROW_CHANGE,
    MessageBatch,
    message_batch_of,
    message_batches_of,
    of_tags,
)
from logicalrep.arrow.packed_rows import rows_from
from logicalrep.arrow.synthetic_messages import preamble, sent_whole
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import BEGIN, COMMIT, RELATION, TYPE
from logicalrep.transactions.transaction import Event, Transaction
from logicalrep_protocol.columnar import Session, decode_batch
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.decoder import OUTSIDE
from logicalrep_runtime.scalars import Lsn, Oid

_FEWEST = 100
"""The number of messages from which on batches are less work than events."""
_FEWEST_ROWS = 16
"""The number of adjacent rows from which on taking them together is less work."""

_DESCRIBES = of_tags(bytes([RELATION, TYPE]))
_FOLLOWED = of_tags(bytes([BEGIN, COMMIT, RELATION, TYPE]))
"""Whether the assembler must see a message with this tag of a transaction that it need not assemble."""

_VERSION_1 = Session(version=1)


@dataclass(frozen=True, slots=True)
class WholeTransactions:
    """Committed transactions in the order of their commits; arrays have an item for each."""

    batches: Iterable[MessageBatch]
    """Their messages, of version 1, each from Begin to Commit; they can be taken once.

    Tables are described before they are used, for a reader that has taken all batches so far; an empty transaction
    before the first one may do so.
    """
    commit_lsns: NDArray[np.int64]
    """The commit LSN of each, ascending."""
    end_lsns: NDArray[np.int64]
    """The end LSN of each."""
    sizes: NDArray[np.int64]
    """The bytes of each one's messages. Valid once all batches are taken."""
    gid: str | None = None
    """The name of a prepared transaction, which is alone then."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The whole transactions at the start of a batch; the first may have begun before it."""

    messages: int
    commits: NDArray[np.intp]
    commit_lsns: NDArray[np.int64]
    end_lsns: NDArray[np.int64]


class BatchIntake(Intake[WholeTransactions]):
    """Takes messages and hands on whole transactions as batches where that pays, else events."""

    def __init__(self, assembler: Assembler, memory_limit: int) -> None:
        """Make one. `memory_limit` is the total bytes that the changes of open transactions may take."""
        super().__init__(assembler)
        self._memory_limit = memory_limit
        # The messages of an open transaction that may come whole; the assembler has seen none of them.
        self._open: list[MessageBatch] = []
        self._resumed_at = Lsn(0)
        # The tables' descriptions in all batches so far.
        self._known: dict[Oid, TableDescription] = {}

    def connect(self, decoder: Decoder) -> None:
        super().connect(decoder)
        self._open = []
        self._resumed_at = self.position.delivered

    def keepalive(self, lsn: Lsn) -> None:
        if not self._open:
            super().keepalive(lsn)

    def take(self, messages: Sequence[tuple[int, bytes]]) -> Iterator[Event | WholeTransactions]:
        yield from self.take_batch(message_batch_of(messages))

    def take_batch(self, batch: MessageBatch) -> Iterator[Event | WholeTransactions]:
        """Take a message batch, as `take` does messages."""
        at = 0
        while at < len(batch):
            if self._is_outside:
                found = self._find(batch[at:])
                if found is not None:
                    yield self._whole(batch[at : at + found.messages], found)
                    at += found.messages
                    continue
                if self._may_come_whole(batch[at:]):
                    self._open.append(batch[at:])
                    if self._size_of_open + self._assembler.memory > self._memory_limit:
                        yield from self._assemble_open()
                    return
                yield from self._assemble_open()
            at += yield from self._assemble(batch, at)

    @property
    def _is_outside(self) -> bool:
        assert self._decoder is not None
        return self._decoder.block == OUTSIDE

    @property
    def _size_of_open(self) -> int:
        return sum(batch.size for batch in self._open)

    # Transactions that come whole

    def _find(self, batch: MessageBatch) -> _Found | None:
        """Return None if the batch begins with no whole transactions, or if these have few messages."""
        tags = batch.tags
        if not self._open and tags[0] != BEGIN:
            return None
        others = np.flatnonzero(~KNOWN.take(tags))
        if len(others):
            tags = tags[: others[0]]
        begins, commits = np.flatnonzero(tags == BEGIN), np.flatnonzero(tags == COMMIT)
        count = _in_turn(begins, commits, is_open=bool(self._open))
        if not count or sum(map(len, self._open)) + commits[count - 1] + 1 < _FEWEST:
            return None
        commits = commits[:count]
        commit_lsns, end_lsns = _fields(batch.array.take(pa.array(commits)), "commit_lsn", "end_lsn")
        begun = batch.array.take(pa.array(begins[:count]))
        if self._open:
            begun = pa.concat_arrays([self._open[0].array[:1], begun])[:count]
        (final_lsns,) = _fields(begun, "final_lsn")
        # Invalid transactions, and those handed on before the connection broke, go to the assembler.
        after = np.concatenate((np.asarray([int(self._resumed_at) - 1]).astype(np.int64), commit_lsns[:-1]))
        wrong = np.flatnonzero((final_lsns != commit_lsns) | (commit_lsns <= after))
        if len(wrong):
            count = int(wrong[0])
        if not count:
            return None
        return _Found(int(commits[count - 1]) + 1, commits[:count], commit_lsns[:count], end_lsns[:count])

    def _whole(self, batch: MessageBatch, found: _Found) -> WholeTransactions:
        ends = batch.ends[found.commits] + self._size_of_open
        batches = [*self._open, batch]
        self._open = []
        described = self._assembler.described
        unknown = [relation for oid, relation in described.items() if self._known.get(oid) is not relation]
        self._follow(batches)
        self._known = self._assembler.described
        first = list(message_batches_of(preamble(unknown))) if unknown else []
        sizes = np.diff(ends, prepend=0)
        return WholeTransactions([*first, *batches], found.commit_lsns, found.end_lsns, sizes)

    def _follow(self, batches: list[MessageBatch]) -> None:
        """Show the assembler its progress and the table descriptions; the other transactions appear empty to it."""
        tags = np.concatenate([batch.tags for batch in batches])
        commits = tags == COMMIT
        number = np.cumsum(commits) - commits
        followed = np.zeros(number[-1] + 1, dtype=bool)
        followed[number[_DESCRIBES[tags]]] = True
        followed[-1] = True
        places = np.flatnonzero(_FOLLOWED[tags] & followed[number])
        start = 0
        for batch in batches:
            stop = start + len(batch)
            for at in (places[np.searchsorted(places, start) : np.searchsorted(places, stop)] - start).tolist():
                for event in self._take_one(int(batch.lsns[at]) % (1 << 64), batch.data(at)):
                    assert isinstance(event, Transaction)
                    event.close()
            start = stop

    def _may_come_whole(self, batch: MessageBatch) -> bool:
        """Return whether the open transaction, or the one that the batch begins with, may still come whole."""
        if not self._open and batch.tags[0] != BEGIN:
            return False
        tags = batch.tags if self._open else batch.tags[1:]
        return bool(KNOWN.take(tags).all()) and not bool(((tags == BEGIN) | (tags == COMMIT)).any())

    # Transactions that are assembled

    def _assemble_open(self) -> Iterator[Event | WholeTransactions]:
        batches, self._open = self._open, []
        for batch in batches:
            at = 0
            while at < len(batch):
                at += yield from self._assemble(batch, at)

    def _assemble(self, batch: MessageBatch, at: int) -> Generator[Event | WholeTransactions, None, int]:
        """Give the assembler the next message, or the run of rows there. Returns the number of messages taken."""
        assert self._decoder is not None
        if not self._is_outside and ROW_CHANGE.take(batch.tags[at : at + _FEWEST_ROWS]).all():
            session = Session(version=self._decoder.version, streaming=self._decoder.streaming)
            rows = rows_from(batch, at, session)
            taken = 0 if rows is None else self._assembler.feed_rows(rows)
            if taken:
                return taken
        for event in self._take_one(int(batch.lsns[at]) % (1 << 64), batch.data(at)):
            if isinstance(event, Transaction) and len(event.changes) >= _FEWEST:
                yield self._sent_whole(event)
            else:
                yield event
        return 1

    def _sent_whole(self, transaction: Transaction) -> WholeTransactions:
        sizes = np.zeros(1, np.int64)

        def batches() -> Iterator[MessageBatch]:
            with transaction:
                for batch in message_batches_of(sent_whole(transaction, self._known)):
                    sizes[0] += batch.size
                    yield batch

        lsns = np.asarray([transaction.commit_lsn, transaction.end_lsn], np.uint64).view(np.int64)
        return WholeTransactions(batches(), lsns[:1], lsns[1:], sizes, transaction.gid)


def _in_turn(begins: NDArray[np.intp], commits: NDArray[np.intp], *, is_open: bool) -> int:
    """Return the number of transactions before one that does not end, or does not follow the last one directly."""
    expected = commits + 1 if is_open else np.concatenate(([0], commits + 1))
    pairs = min(len(begins), len(expected))
    astray = np.flatnonzero(begins[:pairs] != expected[:pairs])
    agreeing = int(astray[0]) if len(astray) else pairs
    return min(agreeing + is_open, len(commits))


def _fields(messages: Any, *names: str) -> list[NDArray[np.int64]]:
    """Return fields that all messages have; LSNs keep their 64 bits."""
    decoded, _ = decode_batch(messages, _VERSION_1, for_spark=True)
    columns = (decoded.column(decoded.schema.get_field_index(name)) for name in names)
    return [column.to_numpy(zero_copy_only=False).astype(np.int64) for column in columns]
