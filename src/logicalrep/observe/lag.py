"""The lag in seconds: one rule for `status`, the page, the metrics and the log."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from logicalrep_runtime.scalars import Lsn

_MOST_HEADS = 4320
"""The heads that are held: those of six hours, if they come every five seconds."""
_NO_LAG_VALID = timedelta(seconds=15)
"""The time for which it holds that no WAL is lacking: heads come every five seconds."""


def lag_seconds(
    lag_bytes: int | None, server_time: datetime, *caught_up_at: datetime | None, as_of: datetime | None = None
) -> float | None:
    """Return the most that a reader may be behind, in seconds.

    Args:
        lag_bytes: the bytes of WAL that the server has written and the reader lacks; None if that is unknown.
        now: the server's time.
        reached: the times by which the reader has all that had committed: that of the last commit that it has, and
            that at which it last had everything. None for one that is unknown.
        seen: the server's time when it told the bytes; None for now.

    Returns 0 if no WAL is lacking, unless the server told that some time ago and has not been heard since, and None if
    nothing is known.

    Example:
        >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        >>> lag_seconds(100, noon + timedelta(seconds=5), noon, None)
        5.0
    """
    if lag_bytes is None:
        return None
    times = [moment for moment in caught_up_at if moment is not None]
    if not lag_bytes:
        if as_of is None or server_time - as_of <= _NO_LAG_VALID:
            return 0.0
        times.append(as_of)
    return max((server_time - max(times)).total_seconds(), 0.0) if times else None


class WalHeads:
    """The times at which a reader looked at the end of the server's WAL: they tell when it last had everything.

    Example:
        >>> heads = WalHeads()
        >>> heads.record_end(noon, Lsn(100))
        >>> heads.caught_up(Lsn(99)), heads.caught_up(Lsn(100))
        (None, noon)
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        # Those whose end the reader has not reached.
        self.ahead: deque[tuple[datetime, Lsn]] = deque(maxlen=_MOST_HEADS)
        self._caught_up: datetime | None = None

    def record_end(self, time: datetime, end: Lsn) -> None:
        """Take the end of the WAL at a time, which is later than all before."""
        if self.ahead and self.ahead[-1][1] == end:
            self.ahead.pop()
        self.ahead.append((time, end))

    def caught_up(self, position: Lsn) -> datetime | None:
        """Return the last time at which all that had committed was before a position; None if that is unknown.

        Args:
            position: the reader has all that committed before it; positions never decrease.
        """
        while self.ahead and self.ahead[0][1] <= position:
            self._caught_up = self.ahead.popleft()[0]
        return self._caught_up
