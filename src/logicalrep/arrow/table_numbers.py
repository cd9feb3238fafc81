"""A hash table from a table's OID to the number of its description, which loops read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FREE = -1
_FEWEST = 64


class TableNumbers:
    """Numbers by OIDs: at the bucket of an OID's last bits, or at the next free bucket; half of them are free."""

    def __init__(self) -> None:
        self._buckets = np.full((_FEWEST, 2), FREE)
        self._count = 0

    @property
    def buckets(self) -> NDArray[np.int64]:
        """Two integers for each bucket: its OID, FREE if it has none, and the number."""
        return self._buckets.ravel()

    def __setitem__(self, oid: int, number: int) -> None:
        bucket = self._bucket(oid)
        self._count += self._buckets[bucket, 0] == FREE
        self._buckets[bucket] = oid, number
        if 2 * self._count > len(self._buckets):
            used = self._buckets[self._buckets[:, 0] != FREE]
            self._buckets = np.full((2 * len(self._buckets), 2), FREE)
            for pair in used:
                self._buckets[self._bucket(int(pair[0]))] = pair

    def _bucket(self, oid: int) -> int:
        mask = len(self._buckets) - 1
        bucket = oid & mask
        while self._buckets[bucket, 0] not in (FREE, oid):
            bucket = (bucket + 1) & mask
        return bucket
