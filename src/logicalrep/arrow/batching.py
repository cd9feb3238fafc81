"""The parts of a session that are read in columns at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from logicalrep.arrow.message_batch import MessageBatch, joined
from logicalrep.transactions.frames import LARGE_BATCH
from logicalrep.transactions.tags import COMMIT

_MOST_BYTES = 1 << 30


class Batching:
    """So many messages at a time, fewer where they are large.

    With a limit, chunks end at the end of a transaction, and they stop before one that takes more bytes than that, and
    before one that does not end: these have to be read row by row, as nothing of them may be seen before their end.
    """

    def __init__(self, batches: Iterator[MessageBatch], count: int, limit: int | None) -> None:
        self._batches = batches
        self._count = count
        self._limit = None if limit is None else min(limit, _MOST_BYTES)
        self._waiting: list[MessageBatch] = []

    def put_back(self, batch: MessageBatch) -> None:
        """Messages of a chunk that were not read after all; they come first in `rest`."""
        self._waiting.insert(0, batch)

    def rest(self) -> Iterator[MessageBatch]:
        """What no chunk had."""
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
                yield joined(self._taken(end))
            elif not is_more or (self._limit is not None and self._size() > self._limit):
                return
            else:
                # The transaction is larger than a chunk: look again when there is twice as much.
                count, size = 2 * self._messages(), 2 * self._size()

    def _messages(self) -> int:
        return sum(map(len, self._waiting))

    def _size(self) -> int:
        return sum(batch.size for batch in self._waiting)

    def _gather(self, count: int, size: int) -> bool:
        """Have so many messages, or so many bytes of them; False where there are no more."""
        while self._messages() < count and self._size() < size:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if len(batch):
                self._waiting.append(batch)
        return True

    def _end(self) -> int:
        """How many of the messages are a chunk; 0 if it cannot be said yet, or if it were too large."""
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

    def _ends(self) -> Any:
        """For each message how many bytes all have up to its end."""
        return np.cumsum(np.concatenate([np.diff(batch.ends, prepend=0) for batch in self._waiting]))

    def _taken(self, end: int) -> list[MessageBatch]:
        """So many messages, which no longer wait. Only what is taken is to be joined: batches are large."""
        taken, waiting = [], []
        for batch in self._waiting:
            if end:
                taken.append(batch[:end])
            if end < len(batch):
                waiting.append(batch[end:])
            end -= min(end, len(batch))
        self._waiting = waiting
        return taken
