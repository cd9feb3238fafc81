"""The received transactions that Spark has not committed yet, from which the ends of batches are chosen."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from logicalrep.spark.monitoring.statistics import Counts, commit_time
from logicalrep.spark.peek.admission import ReadLimits
from logicalrep_runtime.scalars import Lsn


class Backlog:
    """The transactions with rows, ordered by end, each with its commit time and the sums up to it."""

    def __init__(self) -> None:
        self._ends, self._rows, self._bytes, self._commit_times = array("Q"), array("Q"), array("Q"), array("q")
        # The sums before the transactions in the arrays, and the sums up to the last transaction.
        self._rows_before = self._bytes_before = 0
        self._total_rows = self._total_bytes = 0

    def add(self, end: int, rows: int, size: int, committed_at: int) -> None:
        """Add a transaction; `size` is in bytes, `committed_at` in microseconds since 1970 or 0."""
        self._total_rows += rows
        self._total_bytes += size
        self._ends.append(end)
        self._rows.append(self._total_rows)
        self._bytes.append(self._total_bytes)
        self._commit_times.append(committed_at)

    def remove_up_to(self, lsn: Lsn) -> None:
        count = bisect_left(self._ends, lsn + 1)
        if count:
            self._rows_before, self._bytes_before = self._rows[count - 1], self._bytes[count - 1]
            del self._ends[:count], self._rows[:count], self._bytes[:count], self._commit_times[:count]

    def end_after(self, start: Lsn, position: Lsn, limits: ReadLimits) -> tuple[Lsn, bool]:
        """Return the end of the batch from `start`, and whether it has rows; all before `position` is received."""
        first = bisect_left(self._ends, start + 1)
        if first == len(self._ends):
            return max(position, start), False
        rows_before, bytes_before = self._before(first)
        last = len(self._ends) - 1
        if limits.changes is not None:
            last = min(last, bisect_left(self._rows, rows_before + limits.changes + 1) - 1)
        if limits.bytes is not None:
            last = min(last, bisect_left(self._bytes, bytes_before + limits.bytes + 1) - 1)
        if limits.wal is not None:
            last = min(last, bisect_left(self._ends, start + limits.wal + 1) - 1)
        last = max(last, first)
        if last == len(self._ends) - 1:
            # The rest has no rows and needs no batch of its own.
            return max(position, Lsn(self._ends[last])), True
        return Lsn(self._ends[last]), True

    def counts(self, start: Lsn, end: Lsn) -> Counts:
        first, last = bisect_left(self._ends, start + 1), bisect_left(self._ends, end + 1)
        if first == last:
            return Counts()
        rows_before, bytes_before = self._before(first)
        committed_at = self._commit_times[last - 1]
        committed = commit_time(committed_at) if committed_at else None
        return Counts(self._rows[last - 1] - rows_before, self._bytes[last - 1] - bytes_before, committed)

    def has(self, after: Lsn, enough: ReadLimits | None) -> bool:
        first = bisect_left(self._ends, after + 1)
        if enough is None:
            return first < len(self._ends)
        rows, size = self._before(first)
        return (enough.changes is not None and self._total_rows - rows >= enough.changes) or (
            enough.bytes is not None and self._total_bytes - size >= enough.bytes
        )

    def _before(self, transaction: int) -> tuple[int, int]:
        if not transaction:
            return self._rows_before, self._bytes_before
        return self._rows[transaction - 1], self._bytes[transaction - 1]
