"""Sorted runs: immutable files of entries sorted by hash, of which a lookup reads few blocks.

A run has its entries, 16 bytes each, then the first hash of each block of entries, then each block's checksum. The tail
after the entries, a hundredth of their size, stays in memory; index.json has its checksum beside the run's name. Each
block is compared with its checksum before use, which detects torn and damaged files.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from logicalrep.pipeline.limits import Limits

Entries = NDArray[np.uint64]
"""Entries, one a row: the hash of a row's key, and the row's location."""

ENTRY = 16
"""The bytes of an entry."""


class IndexDamagedError(Exception):
    """A damaged file of an index."""


def no_entries() -> Entries:
    return np.zeros((0, 2), np.uint64)


def sorted_by_hash(entries: Entries) -> Entries:
    ordered: Entries = entries[np.argsort(entries[:, 0], kind="stable")]
    return ordered


def entries_of_hashes(entries: Entries, hashes: NDArray[np.uint64]) -> Entries:
    """Return the entries with one of the sorted hashes."""
    if not len(hashes):
        return no_entries()
    index = np.minimum(np.searchsorted(hashes, entries[:, 0]), len(hashes) - 1)
    matching: Entries = entries[hashes[index] == entries[:, 0]]
    return matching


class Run:
    """A run, open for reading."""

    def __init__(self, path: Path, count: int, tail_sum: int, limits: Limits) -> None:
        """Open the file with its number of entries and the checksum of its tail.

        Raises:
            IndexDamagedError: the file is damaged.
            OSError: the file cannot be read.
        """
        self.path, self.count, self.tail_sum = path, count, tail_sum
        self._block, self._max_entries = limits.block_entries, limits.read_entries
        self._blocks = -(-count // self._block)
        self._file = os.open(path, os.O_RDONLY)
        try:
            size = self._blocks * (8 + 4)
            if os.fstat(self._file).st_size != self.size:
                raise IndexDamagedError(f"{path} is damaged")
            tail = os.pread(self._file, size + 1, count * ENTRY)
            if len(tail) != size or zlib.crc32(tail) != tail_sum:
                raise IndexDamagedError(f"{path} is damaged")
        except BaseException:
            self.close()
            raise
        self._firsts = np.frombuffer(tail, np.uint64, self._blocks)
        self._sums = np.frombuffer(tail, np.uint32, self._blocks, 8 * self._blocks)

    @property
    def size(self) -> int:
        return size_of(self.count, self._block)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def delete(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def find(self, hashes: NDArray[np.uint64]) -> Entries:
        """Return the entries with one of the hashes, which are sorted and distinct.

        Raises:
            IndexDamagedError: a block is damaged.
            OSError: the file cannot be read.
        """
        # Entries of one hash may begin at the end of the previous block.
        first = np.maximum(np.searchsorted(self._firsts, hashes, "left") - 1, 0)
        counts = np.searchsorted(self._firsts, hashes, "right") - first
        starts = np.repeat(first - np.cumsum(counts) + counts, counts)
        blocks = np.unique(starts + np.arange(counts.sum()))
        matching, read, count = [no_entries()], [no_entries()], 0
        for entries in self._read(blocks):
            read.append(entries)
            count += len(entries)
            if count >= self._max_entries:
                matching.append(entries_of_hashes(np.concatenate(read), hashes))
                read, count = [no_entries()], 0
        return np.concatenate([*matching, entries_of_hashes(np.concatenate(read), hashes)])

    def between(self, least: int, most: int) -> Entries:
        """Return the entries whose hashes are in a range, its ends included. Raises the errors of `find`."""
        bounds = np.array([least, most], np.uint64)
        first = max(int(np.searchsorted(self._firsts, bounds[0], "left")) - 1, 0)
        last = int(np.searchsorted(self._firsts, bounds[1], "right"))
        read = self._read(np.arange(first, last))
        return _between(np.concatenate([no_entries(), *read]), least, most)

    def _read(self, blocks: NDArray[np.int64]) -> Iterator[Entries]:
        if not len(blocks):
            return
        ends = np.append(np.flatnonzero(np.diff(blocks) != 1), len(blocks) - 1).tolist()
        begin = 0
        for end in ends:
            first, last = int(blocks[begin]), int(blocks[end]) + 1
            begin = end + 1
            max_blocks = self._max_entries // self._block
            for start in range(first, last, max_blocks):
                yield self._read_neighbours(start, min(start + max_blocks, last))

    def _read_neighbours(self, first: int, last: int) -> Entries:
        block, end = self._block * ENTRY, min(last * self._block, self.count)
        size = end * ENTRY - first * block
        data = os.pread(self._file, size, first * block)
        view = memoryview(data)
        sums = [zlib.crc32(view[start : start + block]) for start in range(0, size, block)]
        if len(data) != size or sums != self._sums[first:last].tolist():
            raise IndexDamagedError(f"{self.path} is damaged")
        return np.frombuffer(data, np.uint64).reshape(-1, 2)


def _between(entries: Entries, least: int, most: int) -> Entries:
    hashes = entries[:, 0]
    first, end = np.searchsorted(hashes, np.uint64(least), "left"), np.searchsorted(hashes, np.uint64(most), "right")
    return entries[first:end]


def size_of(count: int, block: int) -> int:
    """Return the bytes of a run with `count` entries in blocks of `block` entries."""
    return count * ENTRY + -(-count // block) * (8 + 4)


def write_run(path: Path, parts: Iterator[Entries], limits: Limits) -> Run:
    """Write a run of sorted entries part by part, and open it. Raises OSError.

    The file is not synced: checksums detect what a failing machine loses.
    """
    size, count, firsts, sums = limits.block_entries, 0, [], []
    pending = no_entries()
    with path.open("xb") as file:

        def write(entries: Entries) -> None:
            nonlocal count
            for start in range(0, len(entries), size):
                block = entries[start : start + size]
                firsts.append(int(block[0, 0]))
                sums.append(zlib.crc32(block.tobytes()))
            file.write(entries.tobytes())
            count += len(entries)

        for part in parts:
            entries = np.concatenate((pending, part)) if len(pending) else part
            whole = len(entries) - len(entries) % size
            write(entries[:whole])
            pending = entries[whole:]
        write(pending)
        tail = np.array(firsts, np.uint64).tobytes() + np.array(sums, np.uint32).tobytes()
        file.write(tail)
    return Run(path, count, zlib.crc32(tail), limits)


class InMemory:
    def __init__(self, entries: Entries) -> None:
        self._entries, self.count = entries, len(entries)

    def between(self, least: int, most: int) -> Entries:
        return _between(self._entries, least, most)


def merged(
    runs: Sequence[Run | InMemory], is_wanted: Callable[[Entries], NDArray[np.bool_]], limits: Limits
) -> Iterator[Entries]:
    """Yield the wanted entries of several runs in order, few at a time. Raises the errors of `Run.find`."""
    total = sum(run.count for run in runs)
    slices = max(-(-total // limits.read_entries), 1)
    bounds = [(number << 64) // slices for number in range(slices + 1)]
    for least, end in pairwise(bounds):
        entries = np.concatenate([run.between(least, end - 1) for run in runs])
        yield sorted_by_hash(entries[is_wanted(entries)])
