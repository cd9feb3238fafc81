"""Division of a session's messages into chunks that are read in columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import MessageBatch, joined
from logicalrep.transactions.frames import LARGE_BATCH
from logicalrep.transactions.tags import COMMIT

_MOST_BYTES = 1 << 30


class Batching:
    """Chunks of `count` messages, or of fewer if they are large.

    With a limit in bytes, chunks end with a transaction. They stop before a transaction that is larger than the
    limit or does not end: such a transaction must be assembled, as none of it may be read before its end.
    """

    def __init__(self, batches: Iterator[MessageBatch], count: int, limit: int | None) -> None:
        self._batches = batches
        self._count = count
        self._limit = None if limit is None else min(limit, _MOST_BYTES)
        self._waiting: list[MessageBatch] = []

    def put_back(self, batch: MessageBatch) -> None:
        self._waiting.insert(0, batch)

    def rest(self) -> Iterator[MessageBatch]:
        yield from self._waiting
        yield from self._batches

    def __iter__(self) -> Iterator[MessageBatch]:
        count, size, is_more = self._count, LARGE_BATCH, True
        while is_more or self._waiting:
            is_more = is_more and self._gather(count, size)
            if not self._waiting:
                return
            end = self._end()
            if end:
                count, size = self._count, LARGE_BATCH
                yield joined(self._take(end))
            elif not is_more or (self._limit is not None and self._size() > self._limit):
                return
            else:
                # The transaction is larger than a chunk: look again once there is twice as much.
                count, size = 2 * self._messages(), 2 * self._size()

    def _messages(self) -> int:
        return sum(map(len, self._waiting))

    def _size(self) -> int:
        return sum(batch.size for batch in self._waiting)

    def _gather(self, count: int, size: int) -> bool:
        """Gather `count` messages or `size` bytes; return False if the messages end first."""
        messages, held = self._messages(), self._size()
        while messages < count and held < size:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if len(batch):
                self._waiting.append(batch)
                messages += len(batch)
                held += batch.size
        return True

    def _end(self) -> int:
        """Return the number of messages in the next chunk; 0 if unknown yet, or if the chunk would be too large."""
        most = self._count
        if self._size() > LARGE_BATCH:
            most = min(most, max(int(np.searchsorted(self._ends(), LARGE_BATCH)), 1))
        if self._limit is None:
            return min(most, self._messages())
        commits = np.flatnonzero(np.concatenate([batch.tags for batch in self._waiting]) == COMMIT)
        whole = int(np.searchsorted(commits, most))
        if whole:
            return int(commits[whole - 1]) + 1
        if len(commits) and self._ends()[commits[0]] <= self._limit:
            return int(commits[0]) + 1
        return 0

    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(np.concatenate([np.diff(batch.ends, prepend=0) for batch in self._waiting]))

    def _take(self, end: int) -> list[MessageBatch]:
        """Remove and return the first `end` messages, unjoined: batches are large, and only these are worth joining."""
        taken, waiting = [], []
        for batch in self._waiting:
            if end:
                taken.append(batch[:end])
            if end < len(batch):
                waiting.append(batch[end:])
            end -= min(end, len(batch))
        self._waiting = waiting
        return taken
