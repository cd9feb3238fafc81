"""A connection to a server that reconnects after the server's restarts. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.retries import Wait, retry
from logicalrep.postgres.server import Connection

_Result = TypeVar("_Result")


class ServerConnection:
    """A connection that opens on demand and reopens after failures; one thread at a time may use it."""

    def __init__(
        self,
        settings: ConnectionSettings,
        waiting: Wait | float,
        *,
        prepare: Callable[[Connection], None] | None = None,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        """Nothing connects before `run`. `prepare` gets each new connection; `on_failure` is called after failures."""
        self._settings = settings
        self._waiting = waiting
        self._prepare = prepare
        self._on_failure = on_failure
        self._connection: Connection | None = None
        self._opened = 0

    @property
    def restarts(self) -> int:
        return max(self._opened - 1, 0)

    def run(self, action: Callable[[Connection], _Result]) -> _Result:
        """Retry while the server is unavailable; raises the last error when time is up."""
        return retry(lambda: action(self._open()), self._waiting, self._fail)

    def close(self) -> None:
        """Close the connection; the next action opens a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _fail(self) -> None:
        self.close()
        if self._on_failure is not None:
            self._on_failure()

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            connection = self._settings.connect()
            try:
                if self._prepare is not None:
                    self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._opened += 1
        return self._connection
