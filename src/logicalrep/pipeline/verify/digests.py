"""Hashes of keys and of whole rows, from `row_texts`: keyed anew for each process, and so never stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.schema.row_texts import row_texts
from logicalrep.pipeline.schema.table_spec import TableSpec

Hashes = NDArray[np.uint64]

BUCKETS = 1 << 20
"""The number of buckets: with a few thousand differing keys, most rows are in equal buckets."""


@dataclass(frozen=True, slots=True)
class Digests:
    keys: Hashes
    """The hash of each row's key; of the whole row if the table has no key."""
    rows: Hashes

    @property
    def buckets(self) -> NDArray[np.int64]:
        return buckets_of(self.keys)


def buckets_of(keys: Hashes) -> NDArray[np.int64]:
    return (keys & np.uint64(BUCKETS - 1)).astype(np.int64)


def digests_of(table: TableSpec, rows: pa.Table | pa.RecordBatch) -> Digests:
    of_rows = _hashes([rows.column(name) for name in table.names])
    return Digests(key_hashes(table, rows) if table.key is not None else of_rows, of_rows)


def key_hashes(table: TableSpec, rows: pa.Table | pa.RecordBatch) -> Hashes:
    """Return the key hashes of rows with at least the key columns."""
    return _hashes([rows.column(name) for name in table.key_names])


def _hashes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    texts = row_texts(columns)
    return np.fromiter(map(hash, texts.to_pylist()), np.int64, len(texts)).view(np.uint64)


class Sums:
    """Independent of the order of the rows."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.zeros(BUCKETS, np.uint64)
        self.counts: NDArray[np.int64] = np.zeros(BUCKETS, np.int64)

    def add(self, digests: Digests) -> None:
        buckets = digests.buckets
        np.add.at(self.hashes, buckets, digests.rows)
        np.add.at(self.counts, buckets, 1)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def differing(self, other: Sums) -> NDArray[np.int64]:
        return np.flatnonzero((self.hashes != other.hashes) | (self.counts != other.counts))


@dataclass(frozen=True, slots=True)
class Fingerprints:
    hashes: Hashes
    counts: NDArray[np.int64]
    versions: Hashes
    """The sum of the hashes of row versions; of the server's rows only."""
    touched: NDArray[np.int64]
    """The number of rows that a transaction, maybe still running, has changed or locked; of the server's rows only."""

    @classmethod
    def none(cls, count: int) -> Fingerprints:
        return cls(
            np.zeros(count, np.uint64), np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.int64)
        )

    def add(self, keys: Hashes, digests: Digests, versions: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Return a mask of added rows; a version ends with the transaction that changed or locked the row, or 0."""
        indices = np.minimum(np.searchsorted(keys, digests.keys), len(keys) - 1)
        is_wanted: NDArray[np.bool_] = keys[indices] == digests.keys
        indices = indices[is_wanted]
        np.add.at(self.hashes, indices, digests.rows[is_wanted])
        np.add.at(self.counts, indices, 1)
        if versions is not None:
            of_rows = np.fromiter(map(hash, versions), np.int64, len(versions)).view(np.uint64)
            is_touched = np.array([not version.endswith(" 0") for version in versions], bool)
            np.add.at(self.versions, indices, of_rows[is_wanted])
            np.add.at(self.touched, indices, is_touched[is_wanted])
        return is_wanted

    def take(self, indices: NDArray[np.int64]) -> Fingerprints:
        return Fingerprints(self.hashes[indices], self.counts[indices], self.versions[indices], self.touched[indices])

    def equal(self, other: Fingerprints) -> NDArray[np.bool_]:
        is_equal: NDArray[np.bool_] = (self.hashes == other.hashes) & (self.counts == other.counts)
        return is_equal
