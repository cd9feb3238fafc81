"""The proof that a server still has the history that a reader has read: the server sends the last commit again.

A server that was restored to an earlier state has an earlier slot. It decodes its WAL from the slot's position, and
therefore sends other commits before the reader's position than the reader has received. A slot at the reader's
position proves the history, because it was acknowledged there. A slot before the position proves nothing: PostgreSQL
stores the acknowledged position late, so that a crash also moves it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.sessions.commit_log import CommitId
from logicalrep.postgres.sessions.walsender import Received, Walsender
from logicalrep.postgres.silence import Backend
from logicalrep.postgres.slots.positions import divergence_error
from logicalrep.transactions.tags import BEGIN, COMMIT, DELETE, INSERT, MESSAGE, TRUNCATE, UPDATE
from logicalrep_protocol import v1
from logicalrep_runtime.scalars import UNIX_EPOCH, Lsn

_CHANGES = frozenset((INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE))


class ResentCommits:
    """Compares the commits that a server sends again before a reader's position with the reader's last commit."""

    def __init__(self, last: CommitId, *, position: Lsn, start: Lsn, judges_unknown: bool) -> None:
        """The reader has every commit before `position`. `judges_unknown`: a later commit that it lacks refutes."""
        self._last = last
        self._position = position
        self._judges_unknown = judges_unknown
        self._is_missing = last.is_commit and start <= last.lsn
        self._start = start
        self._open: CommitId | None = None
        self._has_changes = False

    def take(self, messages: Sequence[tuple[int, bytes]]) -> bool:
        """Compare messages of version 1; return whether the position is reached. Raises LostPositionError."""
        for _, data in messages:
            tag = data[0]
            if tag == BEGIN:
                begin = v1.parse(data)
                assert isinstance(begin, v1.Begin)
                if begin.final_lsn >= self._position:
                    return True
                self._open = CommitId(begin.final_lsn, begin.xid, begin.commit_timestamp + UNIX_EPOCH)
                self._has_changes = False
            elif tag in _CHANGES:
                self._has_changes = True
            elif tag == COMMIT and self._open is not None:
                # Before PostgreSQL 15 servers also send transactions without changes.
                if self._has_changes:
                    self._compare(self._open)
                self._open = None
        return False

    def finish(self) -> None:
        """Raise LostPositionError if the reader's last commit was not sent again."""
        if self._is_missing:
            raise divergence_error(
                f"this reader is at {self._position} and has {self._last}, but the server, whose slot is at "
                f"{self._start}, does not have that commit: the server was restored to an earlier state"
            )

    def _compare(self, commit: CommitId) -> None:
        if commit == self._last:
            self._is_missing = False
        elif commit.lsn == self._last.lsn or (commit.lsn > self._last.lsn and self._judges_unknown):
            raise divergence_error(
                f"this reader is at {self._position} and has not received {commit} of the server: the server was "
                "restored to an earlier state, and has written other transactions since"
            )


class HistoryCheck:
    """A session that reads a slot from its position to the reader's position, and acknowledges nothing."""

    def __init__(
        self,
        settings: ConnectionSettings,
        slot: str,
        options: PluginOptions,
        *,
        last: CommitId,
        position: Lsn,
        judges_unknown: bool,
        silence: float,
        previous_backend: Backend | None,
    ) -> None:
        """See `ResentCommits` and `Walsender` for arguments and errors."""
        # With streaming or two_phase the server would send the same commits.
        options_v1 = replace(options, proto_version=1, streaming="off", two_phase=False)
        self.session = Walsender(settings, slot, options_v1, silence=silence, previous_backend=previous_backend)
        self._resent = ResentCommits(
            last, position=position, start=self.session.started_at, judges_unknown=judges_unknown
        )
        self._position = position

    def step(self, timeout: float) -> bool:
        """Receive messages; return whether the history is proven. Raises LostPositionError, OperationalError."""
        received = self.session.receive(timeout)
        if not self._is_at_the_end(received):
            return False
        self._resent.finish()
        return True

    def _is_at_the_end(self, received: Received) -> bool:
        if self._resent.take(received.messages):
            return True
        return received.keepalive is not None and received.keepalive >= self._position
