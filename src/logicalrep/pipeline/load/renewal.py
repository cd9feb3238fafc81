"""New walsender sessions before loads: some servers' sessions decode under an earlier catalog, do not notice that a
table became published, and omit its changes."""

from __future__ import annotations

import threading
import time
from typing import Protocol

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.retries import Wait
from logicalrep.postgres.server_faults import has_stale_sessions
from logicalrep.postgres.snapshots import hold_temporary_snapshot
from logicalrep_runtime.scalars import Lsn

_CHECK_INTERVAL = 0.05
"""The seconds between two checks whether the new session has begun."""


class RenewableSession(Protocol):
    def restart_session(self, after: Lsn) -> None: ...

    @property
    def is_renewal_pending(self) -> bool:
        """Whether the session requested by `restart_session` has not begun yet."""
        ...


class Renewal:
    """Restarts the slot's session, so that it decodes nothing from before a load's request; threads may share it."""

    def __init__(self, settings: ConnectionSettings, session: RenewableSession, waiting: Wait) -> None:
        self._settings = settings
        self._session = session
        self._waiting = waiting
        self._lock = threading.Lock()
        self._renewed = -1.0

    def renew(self, requested_at: float) -> None:
        """Wait for a new session that begins after all transactions open at the load's request, if the server needs
        one: a later snapshot has all changes that the earlier session omitted. Raises psycopg.Error or Ended."""
        with self._lock:
            if requested_at <= self._renewed:
                return
            with self._settings.connect() as connection:
                if not has_stale_sessions(connection):
                    return
            began = time.monotonic()
            # Every transaction that had written before the slot's creation began has ended before its position.
            with hold_temporary_snapshot(self._settings, self._waiting) as snapshot:
                position = snapshot.lsn
            self._session.restart_session(position)
            while self._session.is_renewal_pending:
                self._waiting.check()
                self._waiting.say(
                    lambda: "a load waits for a new session, which begins once earlier changes are applied"
                )
                time.sleep(_CHECK_INTERVAL)
            self._renewed = began
