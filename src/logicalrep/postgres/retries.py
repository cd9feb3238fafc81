"""Trying again what fails for a while: a server that is away, or a slot that somebody else holds. Needs psycopg 3."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from logicalrep.postgres.connection import ConnectError

_Result = TypeVar("_Result")

_log = logging.getLogger("logicalrep")

TRANSIENT = (psycopg.OperationalError, psycopg.InterfaceError)
"""The classes of errors that a server and libpq have while the server is starting, stopping or gone, and of others."""

_LONGEST_PAUSE = 1.0


class Retries:
    """Failures in a row. They may last for some time from the first one on, however long all went well before."""

    def __init__(self, seconds: float) -> None:
        """For so many seconds."""
        self._seconds = seconds
        self.done()

    def done(self) -> None:
        """Note that something was done, so that the next failure is a first one."""
        self._first: float | None = None
        self._patience: tuple[float, float] | None = None
        self._pause = 0.05

    @property
    def lasted(self) -> float:
        """For how many seconds the failures have lasted."""
        return 0 if self._first is None else time.monotonic() - self._first

    def wait(self, patience: float = math.inf) -> bool:
        """Wait for a moment before the next try; False where the failures have lasted for long enough.

        `patience`: for how many seconds those of this kind may last at most.
        """
        now = time.monotonic()
        if self._first is None:
            self._first = now
        if self._patience is None or self._patience[0] != patience:
            self._patience = patience, now
        if now - self._first >= self._seconds or now - self._patience[1] >= patience:
            return False
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True

    def failed(self, error: psycopg.Error) -> None:
        """Wait after an error of a connection; raise it where it is final, or where they have lasted long enough."""
        if not self.wait(_patience(error)):
            if isinstance(error, ConnectError):
                raise error.after(self.lasted) from None
            raise error
        _log.warning("the server cannot be reached, trying again: %s", str(error).strip())


def retried(action: Callable[[], _Result], seconds: float, failed: Callable[[], None] = lambda: None) -> _Result:
    """Return what an action on a server returns; try again, after calling `failed`, while the server is away.

    Raises the last error once it has been away for so many seconds.
    """
    retries = Retries(seconds)
    while True:
        try:
            return action()
        except TRANSIENT as error:
            failed()
            retries.failed(error)


def _patience(error: psycopg.Error) -> float:
    """Tell for how many seconds an error may last: it passes where a connection broke, or where the server restarts."""
    if isinstance(error, ConnectError):
        return error.patience
    state = error.sqlstate
    passes = state is None or state[:2] in ("08", "57") or state in ("53300", "55006")
    return math.inf if passes else 0
