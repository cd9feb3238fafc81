"""Pairs of sessions that several short reads share, one after another: a new session costs the server milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import Connection
from logicalrep.postgres.session_settings import PIN_IF_SUPPORTED

Pair = tuple[Connection, Connection]


class ReusedSessions:
    """Pairs of sessions for reads in threads of this process; `close` ends them all.

    Each read finds a pair as new: nothing of an earlier read's transaction, settings or objects is left. In another
    process, and after `close`, each read has a pair of its own.
    """

    def __init__(self, settings: ConnectionSettings, *, are_kept: bool = True) -> None:
        self._settings = settings
        self._are_kept = are_kept
        self._idle: list[Pair] = []
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unshared, (self._settings,)

    def __enter__(self) -> ReusedSessions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def pair(self) -> Iterator[Pair]:
        """Yield two sessions without a transaction. Raises the errors of `ConnectionSettings.connect`."""
        with ExitStack() as on_error:
            pair = self._take()
            for connection in pair:
                on_error.callback(connection.close)
            yield pair
            if self._are_kept:
                for connection in pair:
                    connection.rollback()
                    connection.execute("DISCARD ALL")
                    connection.execute(PIN_IF_SUPPORTED)
            with self._lock:
                if self._are_kept:
                    self._idle.append(pair)
                    on_error.pop_all()

    def close(self) -> None:
        """End the idle sessions; sessions in use end after their reads."""
        with self._lock:
            self._are_kept = False
            idle, self._idle = self._idle, []
        for pair in idle:
            for connection in pair:
                connection.close()

    def _take(self) -> Pair:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        with ExitStack() as on_error:
            first = self._settings.connect()
            on_error.callback(first.close)
            pair = first, self._settings.connect()
            on_error.pop_all()
        return pair


def _unshared(settings: ConnectionSettings) -> ReusedSessions:
    return ReusedSessions(settings, are_kept=False)
