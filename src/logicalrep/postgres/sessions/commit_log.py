"""The commits that a reader has received: the evidence that a server still has the history that was read from it.

An LSN names a place in the WAL, not what is there: a server that was put back to an earlier state writes other
transactions under the same LSNs. The last commit with changes identifies the whole history before it, as no two
histories have a commit with the same LSN, transaction id and time.
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
    """The identity of a commit. A transaction id of 0 stands for no commit at all, see `none_since`."""

    lsn: Lsn
    """The commit LSN."""
    xid: int
    """The transaction's id."""
    timestamp: int
    """The time of the commit, in microseconds since 1970."""

    @classmethod
    def none_since(cls, lsn: Lsn) -> Self:
        """Return what stands for a reader that has received no commit with changes from an LSN on."""
        return cls(lsn, 0, 0)

    @property
    def is_commit(self) -> bool:
        """Whether it is the identity of a commit."""
        return self.xid != 0

    def __str__(self) -> str:
        """Return the identity for an error's text."""
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.timestamp)
        return f"the commit of transaction {self.xid} at {self.lsn}, {time.isoformat()}"


@dataclass(frozen=True, slots=True)
class History:
    """The evidence of a reader's position: what the server has to send again if its slot is before the position."""

    last: CommitId
    """The last commit with changes before the position."""
    slot_began: Lsn
    """The position at which the slot was made, and before which it never is again; 0 if that is unknown."""
    server_started: str
    """The time at which the server had started that was read from last, in seconds since 1970."""
    origin: str | None
    """The option `origin` of the sessions, which decides what the server sends."""


class CommitLog:
    """The commits with changes that were received and not acknowledged yet, and the last one before them.

    One thread adds and forgets; others may ask.
    """

    def __init__(self, last: CommitId | None = None) -> None:
        """Begin with the last commit that an earlier process received; None if that is unknown."""
        self._before = last
        self._later: deque[CommitColumns] = deque()
        self._lock = threading.Lock()

    @property
    def last(self) -> CommitId | None:
        """The last commit; None if it is unknown."""
        return _at(self._later[-1], -1) if self._later else self._before

    def begin(self, position: Lsn) -> None:
        """Note that all commits from a position on are received, unless the last one is known already."""
        if self.last is None:
            self._before = CommitId.none_since(position)

    def add(self, commits: CommitColumns) -> None:
        """Add the commits that were received next."""
        if len(commits.lsns):
            with self._lock:
                self._later.append(commits)

    def last_before(self, position: Lsn) -> CommitId | None:
        """Return the last commit before a position, which is not before the last acknowledged one."""
        with self._lock:
            last = self._before
            for commits in self._later:
                count = bisect_left(commits.lsns, position)
                if count:
                    last = _at(commits, count - 1)
                if count < len(commits.lsns):
                    break
            return last

    def forget_before(self, position: Lsn) -> None:
        """Forget the commits before an acknowledged position, except the last one."""
        with self._lock:
            while self._later and self._later[0].lsns[-1] < position:
                self._before = _at(self._later.popleft(), -1)


def _at(commits: CommitColumns, index: int) -> CommitId:
    return CommitId(Lsn(commits.lsns[index]), commits.xids[index], commits.timestamps[index])
