"""The lag in seconds, by one rule for `status`, the page, the metrics and the log."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from logicalrep_runtime.scalars import Lsn

_MOST_HEADS = 4320
"""Six hours, at one WAL end every five seconds."""
_NO_LAG_VALID = timedelta(seconds=15)
"""How long an observed lag of zero stays valid; WAL ends are recorded every five seconds."""


def lag_seconds(
    lag_bytes: int | None, server_time: datetime, *caught_up_at: datetime | None, as_of: datetime | None = None
) -> float | None:
    """Return an upper bound of a reader's lag in seconds; None if unknown.

    The lag is 0 if the reader lacks no WAL, unless `as_of` is more than 15 seconds before `server_time`.

    Args:
        caught_up_at: times up to which the reader has every commit: of its last commit, and when it lacked no WAL.
        as_of: the server's time when it reported `lag_bytes`; None for `server_time`.
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
    """Past ends of the server's WAL with their times: they date the moment when a reader last lacked no WAL."""

    def __init__(self) -> None:
        # Ends that the reader has not reached.
        self.ahead: deque[tuple[datetime, Lsn]] = deque(maxlen=_MOST_HEADS)
        self._caught_up: datetime | None = None

    def record_end(self, time: datetime, end: Lsn) -> None:
        """Record the end of the WAL at a time later than all recorded times."""
        if self.ahead and self.ahead[-1][1] == end:
            self.ahead.pop()
        self.ahead.append((time, end))

    def caught_up(self, position: Lsn) -> datetime | None:
        """Return the last time at which the reader lacked no WAL; None if unknown.

        The reader has every commit before `position`; positions never decrease.
        """
        while self.ahead and self.ahead[0][1] <= position:
            self._caught_up = self.ahead.popleft()[0]
        return self._caught_up
