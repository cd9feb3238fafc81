"""The commits that a reader has received: evidence that a server still has the history that the reader has read.

An LSN is a position in the WAL, not its content: a server restored to an earlier state writes other transactions under
the same LSNs. The last commit with changes identifies the whole history before it, because no two histories have a
commit with the same LSN, transaction id and time.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from logicalrep.transactions.transaction import CommitColumns
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True, slots=True)
class CommitId:
    """The identity of a commit; a transaction id of 0 means no commit, see `none_since`."""

    lsn: Lsn
    xid: int
    timestamp: int
    """The time of the commit, in microseconds since 1970."""

    @classmethod
    def none_since(cls, lsn: Lsn) -> Self:
        """Return the value for a reader without any commit with changes from an LSN on."""
        return cls(lsn, 0, 0)

    @property
    def is_commit(self) -> bool:
        return self.xid != 0

    def __str__(self) -> str:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.timestamp)
        return f"the commit of transaction {self.xid} at {self.lsn}, {time.isoformat()}"


@dataclass(frozen=True, slots=True)
class History:
    """The evidence of a reader's position, which a server whose slot is before the position must send again."""

    last: CommitId
    """The last commit with changes before the position."""
    slot_began: Lsn
    """The position at which the slot was created; it is never before this position. 0 if unknown."""
    server_started: str
    """The start of the last server, in seconds since 1970."""
    origin: str | None
    """The option `origin` of the sessions; with another value the server sends other commits."""


class CommitLog:
    """The received commits with changes that are not acknowledged yet, and the last acknowledged commit.

    One thread adds and forgets commits; other threads may query them.
    """

    def __init__(self, last: CommitId | None = None) -> None:
        """Set the last commit that an earlier process received; None if unknown."""
        self._last_acknowledged = last
        self._unacknowledged: deque[CommitColumns] = deque()
        self._lock = threading.Lock()

    @property
    def last(self) -> CommitId | None:
        """The last received commit; None if unknown."""
        return _at(self._unacknowledged[-1], -1) if self._unacknowledged else self._last_acknowledged

    def begin(self, position: Lsn) -> None:
        """Record that all commits from a position on will be added, unless the last commit is known."""
        if self.last is None:
            self._last_acknowledged = CommitId.none_since(position)

    def add(self, commits: CommitColumns) -> None:
        if len(commits.lsns):
            with self._lock:
                self._unacknowledged.append(commits)

    def last_before(self, position: Lsn) -> CommitId | None:
        """Return the last commit before a position at or after the acknowledged position."""
        with self._lock:
            last = self._last_acknowledged
            for commits in self._unacknowledged:
                count = bisect_left(commits.lsns, position)
                if count:
                    last = _at(commits, count - 1)
                if count < len(commits.lsns):
                    break
            return last

    def forget_before(self, position: Lsn) -> None:
        """Forget the commits before an acknowledged position, except the last of them."""
        with self._lock:
            while self._unacknowledged and self._unacknowledged[0].lsns[-1] < position:
                self._last_acknowledged = _at(self._unacknowledged.popleft(), -1)


def _at(commits: CommitColumns, index: int) -> CommitId:
    return CommitId(Lsn(commits.lsns[index]), commits.xids[index], commits.timestamps[index])
