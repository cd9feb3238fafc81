"""Committed transactions as message batches, so that their rows can be read in columns.

Most transactions are sent whole, from Begin to Commit with nothing in between: their messages pass unchanged, many
transactions at once. Other transactions go through the assembler, runs of rows together: streamed and prepared
transactions, transactions too large to hold until they commit, and sessions that are not in UTF-8. The assembler's
transactions come out as if they had been sent whole, many small transactions together. Needs `logicalrep[arrow]`.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.message_batch import (
    ROW_CHANGE,
    SENT_WHOLE,
    MessageBatch,
    message_batch_in,
    message_batch_of,
    message_batches_of,
    tag_mask,
)
from logicalrep.arrow.packed_rows import rows_from
from logicalrep.arrow.synthetic_messages import alone, preamble, sent_whole
from logicalrep.arrow.transaction_index import integers
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.tags import BEGIN, COMMIT, DELETE, INSERT, MESSAGE, RELATION, TRUNCATE, TYPE, UPDATE
from logicalrep.transactions.transaction import (
    CommitColumns,
    Event,
    NonTransactionalMessage,
    Transaction,
    columns_of,
)
from logicalrep_protocol.columnar import Session, locate_batch
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.versions import Relation, Type
from logicalrep_runtime.layout import OUTSIDE
from logicalrep_runtime.scalars import Lsn, Oid

_JOINED = 1 << 20
"""Bytes of assembled transactions' memory from which they are handed on."""
FEWEST_ROWS = 16

_DESCRIBES = tag_mask(bytes([RELATION, TYPE]))
_FOLLOWED = tag_mask(bytes([BEGIN, COMMIT, RELATION, TYPE]))
"""Whether the assembler must see a message with this tag of a transaction that was sent whole."""

_CHANGES = tag_mask(bytes([INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE]))
"""Whether a message with this tag within a transaction is a change."""

_VERSION_1 = Session(version=1)


@dataclass(frozen=True, slots=True)
class WholeTransactions:
    """Committed transactions, and logical messages outside of them, in order; arrays have an item for each."""

    batches: Iterable[MessageBatch]
    """Messages of version 1 in UTF-8, each transaction from Begin to Commit; they can be taken once.

    Tables are described before use, for a reader that has taken all previous batches; an empty transaction before
    the first transaction may describe them.
    """
    positions: NDArray[np.int64]
    """The position of each transaction's rows, its commit LSN, in ascending order.

    A message's position is the last byte of its record: another commit record may begin at the record's end.
    """
    end_lsns: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """The bytes of each transaction's messages. Valid once all batches are taken."""
    commits: CommitColumns
    gids: Mapping[int, str] = field(default_factory=dict)
    """The names of prepared transactions by their commit LSN as in `positions`."""


@dataclass(frozen=True, slots=True)
class _WholePrefix:
    messages: int
    commits: NDArray[np.intp]
    commit_lsns: NDArray[np.int64]
    end_lsns: NDArray[np.int64]
    xids: NDArray[np.int64]
    commit_timestamps: NDArray[np.int64]


_Assembled = Transaction | NonTransactionalMessage


class BatchIntake(Intake[WholeTransactions]):
    """Takes messages and hands on whole transactions as message batches; other events are decisions."""

    def __init__(self, assembler: Assembler, memory_limit: int) -> None:
        """`memory_limit` is the total bytes of the changes of open transactions."""
        super().__init__(assembler)
        self._memory_limit = memory_limit
        # The messages of an open transaction that may come whole; the assembler has seen none of them.
        self._open: list[MessageBatch] = []
        self._resumed_at = Lsn(0)
        # The tables' descriptions in all batches so far.
        self._descriptions: dict[Oid, TableDescription] = {}
        # For a session in another encoding than UTF-8.
        self._texts: Texts | None = None
        # Assembled transactions that are handed on together with the next transactions, and their memory in bytes.
        self._joined: list[_Assembled] = []
        self._joined_memory = 0
        # The position after the transactions that were handed on, while the assembler is past it.
        self._handed_on: ResumeToken | None = None

    @property
    def position(self) -> ResumeToken:
        return self._handed_on or super().position

    def connect(self, decoder: Decoder) -> None:
        super().connect(decoder)
        self._open = []
        self._resumed_at = self.position.delivered
        self._texts = None if decoder.encoding == "utf-8" else Texts(decoder.encoding)

    def describe(self, relations: Iterable[TableDescription]) -> None:
        batches = list(message_batches_of(preamble(relations)))
        self._pass(batches, Lsn(0))
        self._descriptions = self._assembler.described

    def take_keepalive(self, lsn: Lsn) -> None:
        if not self._open:
            super().take_keepalive(lsn)

    def take(self, messages: Sequence[tuple[int, bytes]]) -> Iterator[Event | WholeTransactions]:
        yield from self.take_batch(message_batch_of(messages))

    def take_envelopes(self, envelopes: Sequence[bytes]) -> Iterator[Event | WholeTransactions]:
        yield from self.take_batch(message_batch_in(envelopes))

    def take_batch(self, batch: MessageBatch) -> Iterator[Event | WholeTransactions]:
        at = 0
        while at < len(batch):
            if self._is_outside and self._texts is None:
                prefix = self._find(batch[at:])
                if prefix is not None:
                    yield from self._take_joined()
                    yield self._take_whole(batch[at : at + prefix.messages], prefix)
                    at += prefix.messages
                    continue
                if self._may_come_whole(batch[at:]):
                    self._open.append(batch[at:])
                    if self._size_of_open + self._assembler.memory > self._memory_limit:
                        yield from self._assemble_open()
                    break
                yield from self._assemble_open()
            at += yield from self._assemble(batch, at)
        yield from self._take_joined()

    @property
    def _is_outside(self) -> bool:
        assert self._decoder is not None
        return self._decoder.block == OUTSIDE

    @property
    def _size_of_open(self) -> int:
        return sum(batch.size for batch in self._open)

    # Transactions that come whole

    def _find(self, batch: MessageBatch) -> _WholePrefix | None:
        tags = batch.tags
        if not self._open and tags[0] != BEGIN:
            return None
        unsupported = np.flatnonzero(~SENT_WHOLE.take(tags))
        if len(unsupported):
            tags = tags[: unsupported[0]]
        begins, commits = np.flatnonzero(tags == BEGIN), np.flatnonzero(tags == COMMIT)
        count = _in_turn(begins, commits, is_open=bool(self._open))
        if not count:
            return None
        commits = commits[:count]
        begun = batch.array.take(pa.array(begins[:count]))
        if self._open:
            begun = pa.concat_arrays([self._open[0].array[:1], begun])[:count]
        ends = batch.array.take(pa.array(commits))
        with locate_batch(pa.concat_arrays([begun, ends]), _VERSION_1) as located:
            first, last = np.arange(count), np.arange(count, 2 * count)
            final_lsns, xids = integers(located, "final_lsn", first), integers(located, "xid", first)
            times = integers(located, "commit_timestamp", first)
            commit_lsns, end_lsns = integers(located, "commit_lsn", last), integers(located, "end_lsn", last)
        # Invalid transactions, and transactions handed on before the connection broke, go to the assembler.
        after = np.concatenate((np.asarray([int(self._resumed_at) - 1]).astype(np.int64), commit_lsns[:-1]))
        wrong = np.flatnonzero((final_lsns != commit_lsns) | (commit_lsns <= after))
        if len(wrong):
            count = int(wrong[0])
        if not count:
            return None
        columns = (column[:count] for column in (commits, commit_lsns, end_lsns, xids, times))
        return _WholePrefix(int(commits[count - 1]) + 1, *columns)

    def _take_whole(self, batch: MessageBatch, prefix: _WholePrefix) -> WholeTransactions:
        ends = batch.ends[prefix.commits] + self._size_of_open
        batches = [*self._open, batch]
        self._open = []
        described = self._assembler.described
        unknown = [relation for oid, relation in described.items() if self._descriptions.get(oid) is not relation]
        self._pass(batches, Lsn(int(prefix.end_lsns[-1]) % (1 << 64)))
        self._descriptions = self._assembler.described
        first = list(message_batches_of(preamble(unknown))) if unknown else []
        sizes = np.diff(ends, prepend=0)
        commits = _with_changes(batches, prefix)
        return WholeTransactions([*first, *batches], prefix.commit_lsns, prefix.end_lsns, sizes, commits)

    def _pass(self, batches: list[MessageBatch], end_lsn: Lsn) -> None:
        """Pass the descriptions in whole transactions to the decoder and the assembler, which need no other message."""
        assert self._decoder is not None
        tags = np.concatenate([batch.tags for batch in batches])
        describes = _DESCRIBES[tags]
        descriptions: list[Relation | Type] = []
        if describes.any():
            commits = tags == COMMIT
            number = np.cumsum(commits) - commits
            indices = np.flatnonzero(_FOLLOWED[tags] & np.isin(number, number[describes]))
            start = 0
            for batch in batches:
                stop = start + len(batch)
                for at in (indices[np.searchsorted(indices, start) : np.searchsorted(indices, stop)] - start).tolist():
                    message = self._decoder.decode(batch.data(at))
                    if isinstance(message, Relation | Type):
                        descriptions.append(message)
                start = stop
        self._assembler.committed_whole(descriptions, end_lsn)

    def _may_come_whole(self, batch: MessageBatch) -> bool:
        if not self._open and batch.tags[0] != BEGIN:
            return False
        tags = batch.tags if self._open else batch.tags[1:]
        return bool(SENT_WHOLE.take(tags).all()) and not bool(((tags == BEGIN) | (tags == COMMIT)).any())

    # Transactions that are assembled

    def _assemble_open(self) -> Iterator[Event | WholeTransactions]:
        batches, self._open = self._open, []
        for batch in batches:
            at = 0
            while at < len(batch):
                at += yield from self._assemble(batch, at)

    def _assemble(self, batch: MessageBatch, at: int) -> Generator[Event | WholeTransactions, None, int]:
        """Pass the message or the run of rows at `at` to the assembler; return the number of messages taken."""
        assert self._decoder is not None
        if self._texts is None and not self._is_outside and ROW_CHANGE.take(batch.tags[at : at + FEWEST_ROWS]).all():
            session = Session(version=self._decoder.version, streaming=self._decoder.streaming)
            rows = rows_from(batch, at, session)
            taken = 0 if rows is None else self._assembler.feed_rows(rows)
            if taken:
                return taken
        previous_position = self.position if self._joined else None
        try:
            events = self._take_one(int(batch.lsns[at]) % (1 << 64), batch.data(at))
        except ValueError:
            yield from self._take_joined()
            raise
        for event in events:
            if isinstance(event, Transaction | NonTransactionalMessage):
                self._joined.append(event)
                self._joined_memory += _memory(event)
                if self._joined_memory >= _JOINED:
                    yield from self._take_joined()
            else:
                self._handed_on = previous_position
                yield from self._take_joined()
                self._handed_on = None
                yield event
        return 1

    def _take_joined(self) -> Iterator[WholeTransactions]:
        if self._joined:
            events, self._joined, self._joined_memory = self._joined, [], 0
            yield self._sent_whole(events)

    def _sent_whole(self, events: list[_Assembled]) -> WholeTransactions:
        sizes = np.zeros(len(events), np.int64)

        def messages() -> Iterator[tuple[int, bytes] | MessageBatch]:
            for number, event in enumerate(events):
                for part in self._messages(event):
                    sizes[number] += part.size if isinstance(part, MessageBatch) else len(part[1])
                    yield part

        lsns = np.array([(_position(event), _end(event)) for event in events], np.uint64).view(np.int64)
        positions, end_lsns = lsns.T
        gids = {
            position: event.gid
            for position, event in zip(positions.tolist(), events, strict=True)
            if isinstance(event, Transaction) and event.gid is not None
        }
        commits = columns_of(events)
        return WholeTransactions(message_batches_of(messages()), positions, end_lsns, sizes, commits, gids)

    def _messages(self, event: _Assembled) -> Iterator[tuple[int, bytes] | MessageBatch]:
        if isinstance(event, NonTransactionalMessage):
            yield alone(event)
            return
        with event:
            yield from sent_whole(event, self._descriptions, self._texts)


def _memory(event: _Assembled) -> int:
    return event.changes.memory if isinstance(event, Transaction) else len(event.message.content)


def _position(event: _Assembled) -> int:
    return event.commit_lsn if isinstance(event, Transaction) else event.message.message_lsn - 1


def _end(event: _Assembled) -> int:
    return event.end_lsn if isinstance(event, Transaction) else event.message.message_lsn


def _with_changes(batches: Sequence[MessageBatch], prefix: _WholePrefix) -> CommitColumns:
    changes = np.cumsum(_CHANGES[np.concatenate([batch.tags for batch in batches])])
    before_last = sum(len(batch) for batch in batches[:-1])
    has_changes = np.diff(changes[prefix.commits + before_last], prepend=0) > 0
    columns = (prefix.commit_lsns, prefix.xids, prefix.commit_timestamps)
    lsns, xids, timestamps = (column[has_changes].tobytes() for column in columns)
    return CommitColumns(array("Q", lsns), array("q", xids), array("q", timestamps))


def _in_turn(begins: NDArray[np.intp], commits: NDArray[np.intp], *, is_open: bool) -> int:
    """Return the number of leading transactions that end and directly follow each other."""
    expected = commits + 1 if is_open else np.concatenate(([0], commits + 1))
    pairs = min(len(begins), len(expected))
    astray = np.flatnonzero(begins[:pairs] != expected[:pairs])
    agreeing = int(astray[0]) if len(astray) else pairs
    return min(agreeing + is_open, len(commits))
