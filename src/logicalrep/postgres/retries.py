"""Retries while a server is not available, or while another process uses a slot. Needs psycopg 3."""

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
"""The error classes of a server that is starting, stopping or unreachable; some of their errors are permanent."""
LOCKED = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
"""The errors of a statement that another session's locks prevent."""

_LONGEST_PAUSE, _LONGER_PAUSE = 1.0, 10.0
"""The longest pauses between retries in seconds: in the first minute, and later."""
REPEAT_INTERVAL = 60.0
"""The seconds between lines about a wait."""


class Ended(Exception):  # noqa: N818
    """The work ended because its `stop` was set."""


class Wait:
    """A wait for a server, a destination or a transaction: time limit, stop event, and lines for people.

    Several connections or threads share a wait, so that all their lines keep its interval.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        stop: threading.Event | None = None,
        say: Callable[[str], None] | None = None,
        say_end: Callable[[str], None] | None = None,
        interval: float = REPEAT_INTERVAL,
    ) -> None:
        """`seconds` limits consecutive failures; `say` gets lines every `interval` seconds, and `say_end`, by default
        `say`, gets the line on their end. Without `say` the lines are warnings of the log.
        """
        self.seconds = seconds
        self._stop = stop or threading.Event()
        self._is_over = False
        self._say, self._say_end = say or _log.warning, say_end or say or _log.warning
        self._interval = interval
        self._lock = threading.Lock()
        self._reported_at: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True

    @property
    def is_over(self) -> bool:
        return self._stop.is_set() or self._is_over

    def pause(self, seconds: float) -> bool:
        self._stop.wait(seconds)
        return not self.is_over

    def check(self) -> None:
        if self.is_over:
            raise Ended

    def say(self, describe: Callable[[], str], kind: str = "") -> None:
        """Report the line that `describe` returns, unless `interval` has not passed since the last line of the kind."""
        with self._lock:
            moment = time.monotonic()
            if moment - self._reported_at.get(kind, -math.inf) < self._interval:
                return
            self._reported_at[kind] = moment
        self._say(describe())

    def end(self, text: str) -> None:
        """Report the end of failures if they were reported; the next failure is reported at once."""
        with self._lock:
            if not self._reported_at:
                return
            self._reported_at.clear()
        self._say_end(text)


class Retries:
    def __init__(self, wait: Wait | float) -> None:
        """Set the wait, or only its time limit in seconds."""
        self._wait = wait if isinstance(wait, Wait) else Wait(wait)
        self._reset()

    def record_success(self) -> None:
        if self._first is not None:
            self._wait.end(f"the server answers again, after {self.lasted:.0f} s: reading resumes, no action needed")
        self._reset()

    def _reset(self) -> None:
        self._first: float | None = None
        self._patience: tuple[float, float] | None = None
        self._pause = 0.05

    @property
    def lasted(self) -> float:
        """The seconds since the first failure."""
        return 0 if self._first is None else time.monotonic() - self._first

    def wait(self, patience: float = math.inf) -> bool:
        """Return False if `patience` (in seconds, for failures of this kind) has passed or the wait is over."""
        time_now = time.monotonic()
        if self._first is None:
            self._first = time_now
        if self._patience is None or self._patience[0] != patience:
            self._patience = patience, time_now
        if time_now - self._first >= self._wait.seconds or time_now - self._patience[1] >= patience:
            return False
        may_retry = self._wait.pause(self._pause)
        longest = _LONGEST_PAUSE if self.lasted < REPEAT_INTERVAL else _LONGER_PAUSE
        self._pause = min(self._pause * 2, longest)
        return may_retry

    def wait_or_raise(self, error: psycopg.Error) -> None:
        """Pause after an error; raise the error if it is permanent or the time limit has passed."""
        patience = _patience(error)
        if patience and self._wait.seconds:
            lasted = f" for {self.lasted:.0f} s" if self.lasted >= 1 else ""
            is_refused = isinstance(error, ConnectError) and error.code != ConnectError.code
            text = _refused_text(error, lasted) if is_refused else _away_text(error, lasted)
            self._wait.say(lambda: text, "refused" if is_refused else "away")
        if self.wait(patience):
            return
        if isinstance(error, ConnectError):
            raise error.after(self.lasted) from None
        if patience == math.inf:
            raise ConnectError(" ".join(str(error).split())).after(self.lasted) from error
        raise error


def retry(action: Callable[[], _Result], wait: Wait | float, failed: Callable[[], None] = lambda: None) -> _Result:
    """While the server is not available, call `failed` and retry; raises the last error when time is up."""
    retries = Retries(wait)
    while True:
        try:
            result = action()
            retries.record_success()
            return result
        except TRANSIENT as error:
            failed()
            retries.wait_or_raise(error)


def _away_text(error: psycopg.Error, lasted: str) -> str:
    return (
        f"the server cannot be reached{lasted}, trying again: {' '.join(str(error).split())}; no change is lost: start "
        "the server if it does not restart by itself"
    )


def _refused_text(error: psycopg.Error, lasted: str) -> str:
    return (
        f"the server refuses the connection{lasted}, trying again: {' '.join(str(error).split())}; no change is lost: "
        "correct the role's password or rights at the server, or restart with the new password"
    )


def _patience(error: psycopg.Error) -> float:
    # Only broken connections and restarts are temporary.
    if isinstance(error, ConnectError):
        return error.patience
    state = error.sqlstate
    passes = state is None or state[:2] in ("08", "57") or state in ("53300", "55006")
    return math.inf if passes else 0
