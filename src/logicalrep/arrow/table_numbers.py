"""A hash table from a table's OID to the number of its description, which compiled loops read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FREE = -1
"""The mark of a free place, in place of an OID."""
_FEWEST = 64


class TableNumbers:
    """Numbers by OIDs.

    A pair lies at the place given by the last bits of its OID, or at the next free one. Half of the places are free.
    """

    def __init__(self) -> None:
        self._places = np.full((_FEWEST, 2), FREE)
        self._count = 0

    @property
    def places(self) -> NDArray[np.int64]:
        """Two integers for each place: its OID, FREE if it has none, and the number."""
        return self._places.ravel()

    def __setitem__(self, oid: int, number: int) -> None:
        place = self._place(oid)
        self._count += self._places[place, 0] == FREE
        self._places[place] = oid, number
        if 2 * self._count > len(self._places):
            known = self._places[self._places[:, 0] != FREE]
            self._places = np.full((2 * len(self._places), 2), FREE)
            for pair in known:
                self._places[self._place(int(pair[0]))] = pair

    def _place(self, oid: int) -> int:
        mask = len(self._places) - 1
        place = oid & mask
        while self._places[place, 0] not in (FREE, oid):
            place = (place + 1) & mask
        return place
