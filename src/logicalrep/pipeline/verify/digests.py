"""Rows as hashes: of the key and of the whole row, summed up in buckets by the key's.

Both sides' rows have the same Arrow values here, as copied rows are typed like those of a load; a row's hash is that of
its text (`row_texts`). A hash is Python's own, keyed anew for each process, and so is never stored.
"""

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
"""The number of buckets: so many that a few thousand differing keys leave most rows in equal ones."""


@dataclass(frozen=True, slots=True)
class Digests:
    """The hashes of some rows."""

    keys: Hashes
    """The hash of each row's key; of the whole row where there is no key."""
    rows: Hashes
    """The hash of each whole row."""

    @property
    def buckets(self) -> NDArray[np.int64]:
        """Each row's bucket."""
        return buckets_of(self.keys)


def buckets_of(keys: Hashes) -> NDArray[np.int64]:
    """Return the buckets of rows with these hashes of their keys."""
    return (keys & np.uint64(BUCKETS - 1)).astype(np.int64)


def digests_of(table: TableSpec, rows: pa.Table | pa.RecordBatch) -> Digests:
    """Return the hashes of rows that have all of the table's columns."""
    of_rows = _hashes([rows.column(name) for name in table.names])
    return Digests(key_hashes(table, rows) if table.key is not None else of_rows, of_rows)


def key_hashes(table: TableSpec, rows: pa.Table | pa.RecordBatch) -> Hashes:
    """Return the hashes of the keys of rows that have at least the key's columns."""
    return _hashes([rows.column(name) for name in table.key_names])


def _hashes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    texts = row_texts(columns)
    return np.fromiter(map(hash, texts.to_pylist()), np.int64, len(texts)).view(np.uint64)


class Sums:
    """The sum of the rows' hashes and the number of rows in each bucket, whatever the order of the rows."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.hashes: Hashes = np.zeros(BUCKETS, np.uint64)
        self.counts: NDArray[np.int64] = np.zeros(BUCKETS, np.int64)

    def add(self, digests: Digests) -> None:
        """Add some rows."""
        buckets = digests.buckets
        np.add.at(self.hashes, buckets, digests.rows)
        np.add.at(self.counts, buckets, 1)

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return int(self.counts.sum())

    def differing(self, other: Sums) -> NDArray[np.int64]:
        """Return the buckets that differ from another's."""
        return np.flatnonzero((self.hashes != other.hashes) | (self.counts != other.counts))


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """One side's rows of each of some keys: the sum of their hashes, and their number."""

    hashes: Hashes
    counts: NDArray[np.int64]
    versions: Hashes
    """The sum of the hashes of the rows' versions; of the server's rows alone."""
    touched: NDArray[np.int64]
    """The number of rows that a transaction, which may still run, has changed or locked; likewise."""

    @classmethod
    def none(cls, count: int) -> Fingerprints:
        """Return those of keys without rows."""
        return cls(
            np.zeros(count, np.uint64), np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.int64)
        )

    def add(self, keys: Hashes, digests: Digests, versions: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Add those of the rows that have one of the keys, which are sorted; return which rows these are.

        A version is a text that ends with the transaction that has changed or locked the row, and with 0 for none.
        """
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
        """Return those of some of the keys."""
        return Fingerprints(self.hashes[indices], self.counts[indices], self.versions[indices], self.touched[indices])

    def equal(self, other: Fingerprints) -> NDArray[np.bool_]:
        """Return for which keys both have the same rows."""
        is_equal: NDArray[np.bool_] = (self.hashes == other.hashes) & (self.counts == other.counts)
        return is_equal
