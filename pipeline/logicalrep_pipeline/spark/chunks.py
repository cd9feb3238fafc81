"""The parts of a session that are read in columns at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logicalrep_pipeline.blocks import Block, joined

_BYTES = 16 << 20
_MOST_BYTES = 1 << 30
_COMMIT = ord("C")


class Chunks:
    """So many messages at a time, fewer where they are large.

    With a limit, chunks end at the end of a transaction, and they stop before one that takes more bytes than that, and
    before one that does not end: these have to be read row by row, as nothing of them may be seen before their end.
    """

    def __init__(self, blocks: Iterator[Block], count: int, limit: int | None) -> None:
        self._blocks = blocks
        self._count = count
        self._limit = None if limit is None else min(limit, _MOST_BYTES)
        self._waiting: list[Block] = []

    def put_back(self, block: Block) -> None:
        """Messages of a chunk that were not read after all; they come first in `rest`."""
        self._waiting.insert(0, block)

    def rest(self) -> Iterator[Block]:
        """What no chunk had."""
        yield from self._waiting
        yield from self._blocks

    def __iter__(self) -> Iterator[Block]:
        count, size, is_more = self._count, _BYTES, True
        while is_more or self._waiting:
            is_more = is_more and self._gather(count, size)
            if not self._waiting:
                return
            block = joined(self._waiting)
            self._waiting = [block]
            end = self._end(block)
            if end:
                self._waiting = [block[end:]] if end < len(block) else []
                count, size = self._count, _BYTES
                yield block[:end]
            elif not is_more or (self._limit is not None and block.size > self._limit):
                return
            else:
                # The transaction is larger than a chunk: look again when there is twice as much.
                count, size = 2 * len(block), 2 * block.size

    def _gather(self, count: int, size: int) -> bool:
        """Have so many messages, or so many bytes of them; False where there are no more."""
        while sum(map(len, self._waiting)) < count and sum(block.size for block in self._waiting) < size:
            block = next(self._blocks, None)
            if block is None:
                return False
            if len(block):
                self._waiting.append(block)
        return True

    def _end(self, block: Block) -> int:
        """How many of the messages are a chunk; 0 if it cannot be said yet, or if it were too large."""
        most = min(self._count, max(int(np.searchsorted(block.ends, _BYTES)), 1))
        if self._limit is None:
            return min(most, len(block))
        commits = np.flatnonzero(block.tags == _COMMIT)
        whole = int(np.searchsorted(commits, most))
        if whole:
            return int(commits[whole - 1]) + 1
        if len(commits) and block.ends[commits[0]] <= self._limit:
            return int(commits[0]) + 1
        return 0
