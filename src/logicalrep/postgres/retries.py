"""Retries while a server is away, or while another process holds a slot. Needs psycopg 3."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Self, TypeVar

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
REPEAT_INTERVAL = 60.0
"""The seconds between two lines about one wait."""


class Ended(Exception):  # noqa: N818
    """Work that was given up, as its `stop` was set."""


class Wait:
    """A wait for a server, a destination or a transaction: its time limit, its end, and its lines for people.

    Several connections or threads share one, so that the lines of all of them keep one interval.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        stop: threading.Event | None = None,
        say: Callable[[str], None] | None = None,
        interval: float = REPEAT_INTERVAL,
    ) -> None:
        """Take the limits of the wait.

        Args:
            seconds: the time limit of a run of failures; infinity to wait for as long as it takes.
            stop: ends the wait once it is set.
            say: takes the lines about the wait; by default they are logged as warnings.
            interval: the least seconds between two lines.
        """
        self.seconds = seconds
        self._stop = stop or threading.Event()
        self._is_over = False
        self._say = say or _log.warning
        self._interval = interval
        self._lock = threading.Lock()
        self._said_at = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True

    @property
    def is_over(self) -> bool:
        """Whether `stop` is set, or the context of the wait has ended."""
        return self._stop.is_set() or self._is_over

    def pause(self, seconds: float) -> bool:
        """Pause for some seconds; return False as soon as the wait is over."""
        self._stop.wait(seconds)
        return not self.is_over

    def check(self) -> None:
        """Raise Ended if the wait is over."""
        if self.is_over:
            raise Ended

    def say(self, describe: Callable[[], str]) -> None:
        """Pass on the line that `describe` returns, unless the last line is too recent."""
        with self._lock:
            moment = time.monotonic()
            if moment - self._said_at < self._interval:
                return
            self._said_at = moment
        self._say(describe())


class Retries:
    """A run of failures, which may last for a limited time after its first."""

    def __init__(self, wait: Wait | float) -> None:
        """Take the wait for the server, or just the time limit of a run of failures, in seconds."""
        self._wait = wait if isinstance(wait, Wait) else Wait(wait)
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
        if now - self._first >= self._wait.seconds or now - self._patience[1] >= patience:
            return False
        goes_on = self._wait.pause(self._pause)
        longest = _LONGEST_PAUSE if self.lasted < REPEAT_INTERVAL else _LONGER_PAUSE
        self._pause = min(self._pause * 2, longest)
        return goes_on

    def wait_or_raise(self, error: psycopg.Error) -> None:
        """Wait after a connection's error; raise it if it is permanent or the time is over."""
        patience = _patience(error)
        if patience and self._wait.seconds:
            lasted = f" for {self.lasted:.0f} s" if self.lasted >= 1 else ""
            text = f"the server cannot be reached{lasted}, trying again: {' '.join(str(error).split())}"
            self._wait.say(lambda: text)
        if self.wait(patience):
            return
        if isinstance(error, ConnectError):
            raise error.after(self.lasted) from None
        if patience == math.inf:
            raise ConnectError(" ".join(str(error).split())).after(self.lasted) from error
        raise error


def retry(action: Callable[[], _Result], wait: Wait | float, failed: Callable[[], None] = lambda: None) -> _Result:
    """Return the result of an action on a server; call `failed` and try again while the server is away.

    Raises the last error once the server has been away for as long as it is waited for.
    """
    retries = Retries(wait)
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
