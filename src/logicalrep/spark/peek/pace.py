"""The pace of the sink: the WAL of a batch that takes about the time that the options ask for."""

from __future__ import annotations

import statistics
import time
from collections import deque

from logicalrep_runtime.scalars import Lsn

LEAST = 1 << 20
"""The smallest bound, in bytes of WAL."""
_REMEMBERED = 8
_DIFFERENT = 1.5
"""The ratio of two batches' sizes from which their times show the fixed part of a batch's time."""
_ON_TIME = 0.1
"""Seconds after a whole second within which a trigger's interval is taken to have begun the batch."""


class Pace:
    """The bound on a batch, which shrinks when batches take longer than a number of seconds, and grows again.

    A planned batch keeps its end, also after a restart. A batch lasts until Spark asks for the next; times that are
    multiples of a trigger's interval are ignored.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._batches: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self._planned: tuple[int, float] | None = None
        self.bound: int | None = None
        """The most WAL of the next batch in bytes; None while no batch has taken too long."""

    def record_batch(self, start: Lsn, end: Lsn) -> None:
        self._planned = (end - start, time.monotonic()) if end > start else None

    def end_batch(self) -> None:
        """Record that Spark asks for another batch: the planned batch is done."""
        if self._planned is None:
            return
        wal, began = self._planned
        self._planned = None
        took = time.monotonic() - began
        if time.time() % 1 >= _ON_TIME:
            self._batches.append((wal, took))
            self._adapt(wal, took)

    def _adapt(self, wal: int, took: float) -> None:
        if took > self._seconds:
            self.bound = self._suitable(wal, took)
        elif self.bound is not None and took < self._seconds / 2 and wal > self.bound / 2:
            self.bound *= 2

    def _suitable(self, wal: int, took: float) -> int | None:
        fixed, per_byte = 0.0, took / wal
        sizes, times = zip(*self._batches, strict=True)
        if max(sizes) > _DIFFERENT * min(sizes):
            per_byte, fixed = statistics.linear_regression(sizes, times)
            if per_byte <= 0:
                # Smaller batches take as long.
                return None
        # Shorter batches would do little but repeat the fixed cost of each.
        return max(int(max(self._seconds - fixed, fixed) / per_byte), LEAST)
