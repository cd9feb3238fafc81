"""Retries while a server is away, or while another process holds a slot. Needs psycopg 3."""

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
"""The error classes of a server that is starting, stopping or gone; they also have permanent errors."""

_LONGEST_PAUSE = 1.0


class Retries:
    """A run of failures, which may last for a limited time after its first."""

    def __init__(self, seconds: float) -> None:
        """Take the time limit of a run of failures, in seconds."""
        self._seconds = seconds
        self.done()

    def done(self) -> None:
        """Note a success: the next failure begins a new run."""
        self._first: float | None = None
        self._patience: tuple[float, float] | None = None
        self._pause = 0.05

    @property
    def lasted(self) -> float:
        """The seconds since the first failure."""
        return 0 if self._first is None else time.monotonic() - self._first

    def wait(self, patience: float = math.inf) -> bool:
        """Wait a moment before the next try; return False if the time is over.

        `patience` is the time limit for failures of this kind, in seconds.
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
        """Wait after a connection's error; raise it if it is permanent or the time is over."""
        if not self.wait(_patience(error)):
            if isinstance(error, ConnectError):
                raise error.after(self.lasted) from None
            raise error
        _log.warning("the server cannot be reached, trying again: %s", str(error).strip())


def retried(action: Callable[[], _Result], seconds: float, failed: Callable[[], None] = lambda: None) -> _Result:
    """Return the result of an action on a server; call `failed` and try again while the server is away.

    Raises the last error once the server has been away for `seconds`.
    """
    retries = Retries(seconds)
    while True:
        try:
            return action()
        except TRANSIENT as error:
            failed()
            retries.failed(error)


def _patience(error: psycopg.Error) -> float:
    """Return the time limit for an error in seconds; only a broken connection or a restart can pass."""
    if isinstance(error, ConnectError):
        return error.patience
    state = error.sqlstate
    passes = state is None or state[:2] in ("08", "57") or state in ("53300", "55006")
    return math.inf if passes else 0
