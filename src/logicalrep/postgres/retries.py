"""Retries while a server is away, or while another process holds a slot. Needs psycopg 3."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from logicalrep.postgres.connection import ConnectError
from logicalrep.transactions.logs import logger

_Result = TypeVar("_Result")

_log = logger("logicalrep")

TRANSIENT = (psycopg.OperationalError, psycopg.InterfaceError)
"""The error classes of a server that is starting, stopping or gone; they also have permanent errors."""
LOCKED = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
"""The errors of a statement that the locks of another session keep from running."""

_LONGEST_PAUSE, _LONGER_PAUSE = 1.0, 10.0
"""The longest pauses between two tries, in seconds: within the first minute, and after it."""
_SAY_AGAIN = 60.0
"""The seconds between two lines about a server that is away."""


class Waiting:
    """The rules by which a program waits for its server: for how long, what ends the waiting, and who is told.

    Several connections of a program share one, so that there is one line a minute for all of them.
    """

    def __init__(
        self, seconds: float, *, stop: threading.Event | None = None, say: Callable[[str], None] | None = None
    ) -> None:
        """Take the time limit of a run of failures, in seconds.

        Args:
            seconds: the limit; infinity to wait for as long as it takes.
            stop: ends the waiting once it is set.
            say: takes the lines about it; by default they are logged as warnings.
        """
        self.seconds = seconds
        self._stop = stop or threading.Event()
        self._is_over = False
        self._say = say or _log.warning
        self._lock = threading.Lock()
        self._said_at = -math.inf

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the server any more."""
        return self._stop.is_set() or self._is_over

    def pause(self, seconds: float) -> bool:
        """Wait for some seconds; return False as soon as the waiting is to end."""
        self._stop.wait(seconds)
        return not self.is_over

    def end(self) -> None:
        """End the waiting: nobody waits for the server any more."""
        self._is_over = True

    def say(self, text: str) -> None:
        """Pass a line on, unless another one was within the last minute."""
        with self._lock:
            now = time.monotonic()
            if now - self._said_at < _SAY_AGAIN:
                return
            self._said_at = now
        self._say(text)


class Retries:
    """A run of failures, which may last for a limited time after its first."""

    def __init__(self, waiting: Waiting | float) -> None:
        """Take how the server is waited for, or just the time limit of a run of failures, in seconds."""
        self._waiting = waiting if isinstance(waiting, Waiting) else Waiting(waiting)
        self.record_success()

    def record_success(self) -> None:
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
        if now - self._first >= self._waiting.seconds or now - self._patience[1] >= patience:
            return False
        goes_on = self._waiting.pause(self._pause)
        longest = _LONGEST_PAUSE if self.lasted < _SAY_AGAIN else _LONGER_PAUSE
        self._pause = min(self._pause * 2, longest)
        return goes_on

    def wait_or_raise(self, error: psycopg.Error) -> None:
        """Wait after a connection's error; raise it if it is permanent or the time is over."""
        patience = _patience(error)
        if patience and self._waiting.seconds:
            lasted = f" for {self.lasted:.0f} s" if self.lasted >= 1 else ""
            self._waiting.say(f"the server cannot be reached{lasted}, trying again: {' '.join(str(error).split())}")
        if self.wait(patience):
            return
        if isinstance(error, ConnectError):
            raise error.after(self.lasted) from None
        if patience == math.inf:
            raise ConnectError(" ".join(str(error).split())).after(self.lasted) from error
        raise error


def retry(
    action: Callable[[], _Result], waiting: Waiting | float, failed: Callable[[], None] = lambda: None
) -> _Result:
    """Return the result of an action on a server; call `failed` and try again while the server is away.

    Raises the last error once the server has been away for as long as it is waited for.
    """
    retries = Retries(waiting)
    while True:
        try:
            return action()
        except TRANSIENT as error:
            failed()
            retries.wait_or_raise(error)


def _patience(error: psycopg.Error) -> float:
    """Return the time limit for an error in seconds; only a broken connection or a restart can pass."""
    if isinstance(error, ConnectError):
        return error.patience
    state = error.sqlstate
    passes = state is None or state[:2] in ("08", "57") or state in ("53300", "55006")
    return math.inf if passes else 0
