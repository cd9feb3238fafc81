"""The silence of a server: a stuck proxy or a frozen server sends nothing, while TCP answers. Needs psycopg 3.

A long statement is silent, too, so that no statement has a deadline. A session that has heard nothing for a while has
another session ask the server what it does.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeVar

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

from logicalrep.transactions.logs import logger
from logicalrep_runtime.errors import LogicalRepError

_Result = TypeVar("_Result")

_log = logger("logicalrep")

PATIENCE = 60.0
"""The longest time without a word of the server, in seconds; PostgreSQL's own workers have the same."""
PATIENCE_OF_SECOND = 10.0
"""The same of a session that asks for another one."""
_ON_THE_WAY = 1.0
"""The longest time for which an answer is on its way, in seconds."""

# A server process with one of these waits for the other side: it has sent its answer, or cannot send it.
_WAITS_FOR_US = """
SELECT wait_event IN ('ClientRead', 'ClientWrite')
FROM pg_catalog.pg_stat_activity WHERE pid = %s AND backend_start = %s
"""
_OWN = "SELECT pid, backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()"
_END = """
SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid = %s AND backend_start = %s
"""


class SilentServerError(LogicalRepError, psycopg.OperationalError):
    """A server from which nothing comes, though its address answers, or though the answer is long due."""

    code = "SERVER_SILENT"


class WatchedConnection(psycopg.Connection[TupleRow]):
    """A connection that gives up a server that is silent and does not work for it any more.

    A statement may take as long as it does. Every `patience` seconds without a word, another session asks the server.
    """

    patience = PATIENCE
    """The seconds without a word after which the server is asked."""
    second: Callable[[psycopg.Connection[TupleRow]], WatchedConnection] | None = None
    """Opens another session on a session's server, which asks for it; None for one that asks itself."""
    backend: Backend | None = None
    """The server's process."""
    password_command: str | None = None
    """The command that prints the password of another session on the same server; None without one."""

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
        """Run an action of psycopg, which yields whenever it waits for the server."""
        return super().wait(self._wait_patiently(gen), *arguments, **named)

    def _wait_patiently(self, waits: Generator[Any, Any, _Result]) -> Generator[Any, Any, _Result]:
        silent, before = 0.0, time.monotonic()
        try:
            state = next(waits)
            while True:
                # Nothing comes in if psycopg has waited for a moment in vain.
                ready = yield state
                now = time.monotonic()
                # A process that was stopped for a while has not waited meanwhile.
                silent, before = 0.0 if ready else silent + min(now - before, _ON_THE_WAY), now
                if silent >= self.patience:
                    check_works(self)
                    silent = 0.0
                state = waits.send(ready)
        except StopIteration as done:
            result: _Result = done.value
            return result


@dataclass(frozen=True, slots=True)
class Backend:
    """The server's process of a session."""

    pid: int
    began: datetime
    """The time of its start: ids are used again, and another server may have taken over, whose processes are others."""

    @classmethod
    def query(cls, connection: psycopg.Connection[TupleRow]) -> Self | None:
        """Return the process of a connection; None if the server does not tell it."""
        cursor = connection.execute(_OWN)
        row = None if cursor.description is None else cursor.fetchone()
        return None if row is None else cls(*row)

    def end(self, observer: psycopg.Connection[TupleRow]) -> None:
        """End the process, if it is still there."""
        observer.execute(_END, (self.pid, self.began))


def check_works(connection: psycopg.Connection[TupleRow]) -> None:
    """Close a silent session and raise SilentServerError, unless the server still works for it, or may do so."""
    why = f"the server has been silent for {getattr(connection, 'patience', PATIENCE):.0f} s"
    second, backend = getattr(connection, "second", None), getattr(connection, "backend", None)
    if second is not None and backend is not None:
        try:
            with second(connection) as asking:
                row = asking.execute(_WAITS_FOR_US, (backend.pid, backend.began)).fetchone()
                if row is not None and not row[0]:
                    _log.info("%s, and its process %d works", why, backend.pid)
                    return
                if wait_readable(connection, _ON_THE_WAY):
                    return
                # It would keep its locks, its snapshot or its slot.
                backend.end(asking)
                why += f", though its process {backend.pid} " + ("is gone" if row is None else "waits for this side")
        except psycopg.OperationalError as error:
            if getattr(error, "code", "") == "CONNECTION_REFUSED":
                # It refuses sessions, as it has too many, and so is there.
                _log.warning("%s, and cannot be asked whether it works: %s", why, error)
                return
            why += f", and to another session too: {error}"
    connection.close()
    raise SilentServerError(why)


def wait_readable(connection: psycopg.Connection[TupleRow], timeout: float) -> bool:
    """Wait until the server has sent data, for `timeout` seconds at most; return whether it has."""
    # Not by `select`, which takes no descriptor from 1024 on.
    waiting = select.poll()
    waiting.register(connection.pgconn.socket, select.POLLIN)
    return bool(waiting.poll(max(timeout, 0) * 1000))


def receive_data(connection: psycopg.Connection[TupleRow]) -> None:
    """Wait until the server has sent data, and let libpq take it. Raises SilentServerError."""
    while not wait_readable(connection, getattr(connection, "patience", PATIENCE)):
        check_works(connection)
    connection.pgconn.consume_input()


def next_result(connection: psycopg.Connection[TupleRow]) -> PGresult | None:
    """Return the next result of what was sent; None if there is none any more. Raises SilentServerError."""
    while connection.pgconn.is_busy():
        receive_data(connection)
    return connection.pgconn.get_result()


def execute_command(connection: psycopg.Connection[TupleRow], command: bytes) -> PGresult:
    """Return the last result of a command of a walsender, which may begin a COPY. Raises SilentServerError."""
    connection.pgconn.send_query(command)
    last = None
    while (result := next_result(connection)) is not None:
        last = result
        if result.status == pq.ExecStatus.COPY_BOTH:
            break
    assert last is not None
    return last
