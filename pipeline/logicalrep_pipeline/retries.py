"""Trying again what fails for a while: a server that is away, or a slot that somebody else holds. Needs psycopg 3."""

from __future__ import annotations

import logging
import re
import time

import psycopg

_log = logging.getLogger("logicalrep")

TRANSIENT = (psycopg.OperationalError, psycopg.InterfaceError)
"""The classes of errors that a server and libpq have while the server is starting, stopping or gone, and of others."""

_LONGEST_PAUSE = 1.0

_FINAL = re.compile(
    r"password|authentication|does not exist|pg_hba|invalid [\w ]*value|permission denied|not permitted"
)


class Retries:
    """Failures in a row. They may last for some time from the first one on, however long all went well before."""

    def __init__(self, seconds: float) -> None:
        """For so many seconds."""
        self._seconds = seconds
        self.done()

    def done(self) -> None:
        """Note that something was done, so that the next failure is a first one."""
        self._first: float | None = None
        self._pause = 0.05

    def wait(self) -> bool:
        """Wait for a moment before the next try; False where the failures have lasted for long enough."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
        if now - self._first > self._seconds:
            return False
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True

    def failed(self, error: psycopg.Error) -> None:
        """Wait after an error of a connection; raise it where it is final, or where they have lasted long enough."""
        if not is_transient(error) or not self.wait():
            raise error
        _log.warning("the server cannot be reached, trying again: %s", str(error).strip())


def is_transient(error: psycopg.Error) -> bool:
    """Whether the error may pass: a connection that broke, a server that restarts; not a wrong password."""
    state = error.sqlstate
    if state is None:
        text = str(error)
        return _FINAL.search(text) is None
    return state[:2] in ("08", "57") or state in ("53300", "55006")
