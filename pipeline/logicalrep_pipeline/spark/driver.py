"""What the readers of both modes share in the driver: one connection that is made when needed, and made again."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from logicalrep_pipeline.preflight import check
from logicalrep_pipeline.slots import Connection, create_slot, find_slot
from logicalrep_pipeline.spark.logs import warn
from logicalrep_pipeline.spark.options import SourceOptions

_Result = TypeVar("_Result")

log = logging.getLogger("logicalrep")

# What a server says, and what libpq says, while it is starting, stopping or gone; other errors are final.
_TRANSIENT = (psycopg.OperationalError, psycopg.InterfaceError)


_FINAL = re.compile(
    r"password|authentication|does not exist|pg_hba|invalid [\w ]*value|permission denied|not permitted"
)


class Driver:
    """A connection to the server that survives the server's restarts."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._connection: Connection | None = None
        self._checked = False

    def run(self, action: Callable[[Connection], _Result]) -> _Result:
        """What an action on a connection returns; it is tried again while the server cannot be reached."""
        return persistently(lambda: action(self._connected()), self._options.retry_timeout, self.close)

    def close(self) -> None:
        """Close the connection; the next action makes a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._options.connection.connect()
        if not self._checked:
            warn(check(self._connection, self._options.needs))
            self._checked = True
        return self._connection


def ensure_slot(connection: Connection, options: SourceOptions) -> None:
    """Make the slot where there is none, if it is to be made."""
    if find_slot(connection, options.the_slot) is None and options.create_slot:
        create_slot(connection, options.the_slot, two_phase=options.two_phase, failover=options.failover)


def persistently(action: Callable[[], _Result], timeout: float, reset: Callable[[], None]) -> _Result:
    """What an action returns, tried again for some seconds while the server is away; `reset` runs before each try."""
    deadline = time.monotonic() + timeout
    pause = 0.05
    while True:
        try:
            return action()
        except _TRANSIENT as error:
            reset()
            if not is_transient(error) or time.monotonic() > deadline:
                raise
            log.warning("the server cannot be reached, trying again: %s", str(error).strip())
            time.sleep(pause)
            pause = min(pause * 2, 2)


def is_transient(error: psycopg.Error) -> bool:
    """Whether the error may pass: a connection that broke, a server that restarts; not a wrong password."""
    state = error.sqlstate
    if state is None:
        text = str(error)
        return _FINAL.search(text) is None
    return state[:2] in ("08", "57") or state in ("53300", "55006")


def log_to_standard_error() -> None:
    """Show the log lines where the program that uses Spark has not set up logging for its Python workers."""
    if not log.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
