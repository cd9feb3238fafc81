"""Detection of silent servers: behind a stuck proxy or a frozen server, TCP answers but no data arrives.

A long statement is also silent, so that statements have no deadline. After a silence, another session queries whether
the server still works for the silent session. Needs psycopg 3.
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
"""The longest silence of a session before it is checked, in seconds; PostgreSQL's workers have the same limit."""
PATIENCE_OF_OBSERVER = 10.0
"""The longest silence of a session that checks another session, in seconds."""
_ANSWER_TRANSIT = 1.0
"""The longest time that an answer takes from server to client, in seconds."""

# With these wait events, the server process has sent its answer, or cannot send it.
_WAITS_FOR_CLIENT = """
SELECT wait_event IN ('ClientRead', 'ClientWrite')
FROM pg_catalog.pg_stat_activity WHERE pid = %s AND backend_start = %s
"""
_OWN_BACKEND = "SELECT pid, backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()"
_END = """
SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid = %s AND backend_start = %s
"""


class SilentServerError(LogicalRepError, psycopg.OperationalError):
    """The server's address accepts connections, but the server sends nothing, or an answer is overdue."""

    code = "SERVER_SILENT"


class WatchedConnection(psycopg.Connection[TupleRow]):
    """A connection that ends if the server is silent and no longer works for it.

    Statements have no time limit. After every `patience` seconds of silence, another session checks the server.
    """

    patience = PATIENCE
    """The seconds of silence before a check."""
    connect_observer: Callable[[psycopg.Connection[TupleRow]], WatchedConnection] | None = None
    """Opens the session that checks this session; None if this session checks another session."""
    backend: Backend | None = None
    password_command: str | None = None

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
        return super().wait(self._wait_patiently(gen), *arguments, **named)

    def _wait_patiently(self, waits: Generator[Any, Any, _Result]) -> Generator[Any, Any, _Result]:
        silent_seconds, checked_at = 0.0, time.monotonic()
        try:
            state = next(waits)
            while True:
                # `ready` is empty if psycopg waited without data.
                ready = yield state
                time_now = time.monotonic()
                # A stopped process (SIGSTOP) did not wait.
                silent_seconds, checked_at = (
                    0.0 if ready else silent_seconds + min(time_now - checked_at, _ANSWER_TRANSIT),
                    time_now,
                )
                if silent_seconds >= self.patience:
                    check_works(self)
                    silent_seconds = 0.0
                state = waits.send(ready)
        except StopIteration as done:
            result: _Result = done.value
            return result


@dataclass(frozen=True, slots=True)
class Backend:
    pid: int
    began: datetime
    """The start time, because process ids are reused and another server may have taken over."""

    @classmethod
    def query(cls, connection: psycopg.Connection[TupleRow]) -> Self | None:
        cursor = connection.execute(_OWN_BACKEND)
        row = None if cursor.description is None else cursor.fetchone()
        return None if row is None else cls(*row)

    def end(self, observer: psycopg.Connection[TupleRow]) -> None:
        observer.execute(_END, (self.pid, self.began))


def check_works(connection: psycopg.Connection[TupleRow]) -> None:
    """Close a silent session and raise SilentServerError, unless the server works for it, or cannot be queried."""
    reason = f"the server has been silent for {getattr(connection, 'patience', PATIENCE):.0f} s"
    connect_observer, backend = getattr(connection, "connect_observer", None), getattr(connection, "backend", None)
    if connect_observer is not None and backend is not None:
        try:
            with connect_observer(connection) as observer:
                row = observer.execute(_WAITS_FOR_CLIENT, (backend.pid, backend.began)).fetchone()
                if row is not None and not row[0]:
                    _log.info("%s, and its process %d works", reason, backend.pid)
                    return
                if wait_readable(connection, _ANSWER_TRANSIT):
                    return
                # The process would keep its locks, snapshot or slot.
                backend.end(observer)
                state = "has ended" if row is None else "waits for this client"
                reason += f", though its process {backend.pid} {state}"
        except psycopg.OperationalError as error:
            if getattr(error, "code", "") == "CONNECTION_REFUSED":
                # A server that refuses sessions, because it has too many, is running.
                _log.warning("%s, and another session cannot check it: %s", reason, error)
                return
            reason += f", also for another session: {error}"
    connection.close()
    raise SilentServerError(reason)


def wait_readable(connection: psycopg.Connection[TupleRow], timeout: float) -> bool:
    """Wait until the server has sent data, for at most `timeout` seconds; return whether data is available."""
    # `select` does not accept descriptors from 1024 on.
    waiting = select.poll()
    waiting.register(connection.pgconn.socket, select.POLLIN)
    return bool(waiting.poll(max(timeout, 0) * 1000))


def receive_data(connection: psycopg.Connection[TupleRow]) -> None:
    """Wait for data of the server and pass it to libpq. Raises SilentServerError."""
    while not wait_readable(connection, getattr(connection, "patience", PATIENCE)):
        check_works(connection)
    connection.pgconn.consume_input()


def next_result(connection: psycopg.Connection[TupleRow]) -> PGresult | None:
    """Return the next result of the sent statements; None after the last result. Raises SilentServerError."""
    while connection.pgconn.is_busy():
        receive_data(connection)
    return connection.pgconn.get_result()


def execute_command(connection: psycopg.Connection[TupleRow], command: bytes) -> PGresult:
    """Return the last result of a walsender's command, or the start of its COPY. Raises SilentServerError."""
    connection.pgconn.send_query(command)
    last = None
    while (result := next_result(connection)) is not None:
        last = result
        if result.status == pq.ExecStatus.COPY_BOTH:
            break
    assert last is not None
    return last
