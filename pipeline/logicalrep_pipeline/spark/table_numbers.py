"""The number of each table's description by the table's OID, where a compiled loop looks it up."""

from __future__ import annotations

import numpy as np

from logicalrep.columnar.walked import address

_FEWEST = 64


class TableNumbers:
    """Numbers by OIDs, which are never 0.

    A pair is at the place that the last bits of its OID say, or at the next one that is free, as half of them are.
    """

    def __init__(self) -> None:
        self._places = np.zeros((_FEWEST, 2), np.int64)
        self._count = 0

    @property
    def address(self) -> int:
        """Where the places begin, each with an OID, 0 if it is free, and its number."""
        return address(self._places.ravel())

    @property
    def mask(self) -> int:
        """The bits of an OID that say where it is."""
        return len(self._places) - 1

    def __setitem__(self, oid: int, number: int) -> None:
        place = self._place(oid)
        self._count += self._places[place, 0] == 0
        self._places[place] = oid, number
        if 2 * self._count > len(self._places):
            known = self._places[self._places[:, 0] != 0]
            self._places = np.zeros((2 * len(self._places), 2), np.int64)
            for pair in known:
                self._places[self._place(int(pair[0]))] = pair

    def _place(self, oid: int) -> int:
        place = oid & self.mask
        while self._places[place, 0] not in (0, oid):
            place = (place + 1) & self.mask
        return place
