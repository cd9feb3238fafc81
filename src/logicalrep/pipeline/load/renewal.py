"""New sessions of the walsender before loads, on servers whose sessions do not see that a table became published.

A transaction that has written a table from before is decoded under the catalog of then. On such a server the session
knows the table as one that is not published from there on, and leaves out all its later changes.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.retries import Wait
from logicalrep.postgres.server_faults import has_stale_sessions
from logicalrep.postgres.snapshots import hold_temporary_snapshot
from logicalrep_runtime.scalars import Lsn

_CHECK_AGAIN = 0.05
"""The seconds between two tries whether the new session may begin."""


class RenewableSession(Protocol):
    """The reader of a slot."""

    def restart_session(self, after: Lsn) -> None:
        """Have a new session begin once every commit before an LSN is acknowledged."""
        ...

    @property
    def is_renewal_pending(self) -> bool:
        """Whether the session is one from before `restart_session`."""
        ...


class Renewal:
    """Has the slot read by a session that decodes nothing from before a load was wanted; threads may share it."""

    def __init__(self, settings: ConnectionSettings, session: RenewableSession, waiting: Wait) -> None:
        """Take the server, the reader of the slot, and the wait for its new session."""
        self._settings = settings
        self._session = session
        self._waiting = waiting
        self._lock = threading.Lock()
        self._renewed = -1.0

    def renew(self, wanted: float) -> None:
        """Wait until the session is a new one, if the server needs that.

        The new session begins where all transactions have ended that were open when the load was wanted: those that
        it decodes began later, and see what is published. A load whose snapshot is made then has the rows of all
        changes that the earlier session left out.

        Args:
            wanted: the moment at which the load was wanted, of the monotonic clock, in seconds.

        Raises:
            psycopg.Error: the server cannot be reached.
            Ended: the wait is over.
        """
        with self._lock:
            if wanted <= self._renewed:
                return
            with self._settings.connect() as connection:
                if not has_stale_sessions(connection):
                    return
            began = time.monotonic()
            # Every transaction that had written when the making of the slot began has ended before its position.
            with hold_temporary_snapshot(self._settings, self._waiting) as snapshot:
                position = snapshot.lsn
            self._session.restart_session(position)
            while self._session.is_renewal_pending:
                self._waiting.check()
                self._waiting.say(
                    lambda: "a load waits for a new session, which begins once earlier changes are applied"
                )
                time.sleep(_CHECK_AGAIN)
            self._renewed = began
