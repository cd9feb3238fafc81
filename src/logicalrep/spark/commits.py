"""Spark's checkpoint as the reader of a stream knows it: only what is certainly in it may be acknowledged to a server.

Spark tells what it has committed by `commit`, before it plans the next batch. From 4.2 on it also names the end of the
last batch as the start of the next one, which is earlier, and all that comes of an idle query. With the sink's option
`asyncProgressTrackingEnabled` Spark writes its checkpoint later, and not for each batch: that start is not in it.
"""

from __future__ import annotations

import time

from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_SETTLED = 10.0
"""The seconds of an idle query after which its checkpoint has the first batch, which Spark always begins to write."""


class AsyncProgressError(LogicalRepError, RuntimeError):
    """A batch that Spark begins although its checkpoint may lack the one before."""

    code = "ASYNC_PROGRESS"


class Commits:
    """What is certainly in the checkpoint of a query, from the calls that its reader gets.

    Example:
        >>> commits = Commits()
        >>> commits.planned(Lsn(10), Lsn(20))
        >>> commits.committed(Lsn(20))
        >>> commits.planned(Lsn(20), Lsn(30))
        >>> commits.has(Lsn(30))
        True
    """

    def __init__(self) -> None:
        """Begin with a new process, which starts from what the checkpoint has."""
        self._first: Lsn | None = None
        # The last batch, and whether Spark had committed all before it by then.
        self._start = self._end = Lsn(0)
        self._is_proven = False
        self._committed = Lsn(0)
        self._asked: tuple[Lsn, float] | None = None

    def committed(self, end: Lsn) -> None:
        """Note that Spark has committed everything before a position."""
        self._committed = max(self._committed, end)

    def planned(self, start: Lsn, end: Lsn) -> None:
        """Note that Spark begins a batch. Raises AsyncProgressError if it has not committed the one before."""
        if start == end or (start, end) == (self._start, self._end):
            return
        self._is_proven = start <= self._committed
        if self._first is None:
            # The first batch of a process has no other before it, or is one that an earlier process has begun.
            self._first = start
        elif self._end and not self._is_proven:
            raise AsyncProgressError(
                f"Spark reads from {start} on, and has committed only what is before {self._committed}, as with the "
                "sink's option asyncProgressTrackingEnabled: leave that option out, and the query goes on from its "
                "checkpoint"
            )
        self._start, self._end = start, end

    def has(self, start: Lsn) -> bool:
        """Return whether the checkpoint has everything before the position from which Spark asks for the next batch."""
        if self._first is None:
            self._first = start
        if start <= max(self._first, self._committed) or (start == self._end and self._is_proven):
            return True
        now = time.monotonic()
        if self._asked is None or self._asked[0] != start:
            self._asked = start, now
        return now - self._asked[1] >= _SETTLED
