"""COPY … TO STDOUT in the bytes that the server sends, without a Python object for each value. Needs psycopg 3."""

from __future__ import annotations

import select
import time
from collections.abc import Generator, Iterator
from itertools import chain

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import error_of
from logicalrep.postgres.slots import Connection


def started(connection: Connection, statement: sql.Composed) -> Iterator[memoryview | bytes]:
    """Send a COPY and return its rows once the first has arrived, so that an early error is raised here."""
    send(connection, statement)
    rows = received(connection)
    first = next(rows, b"")
    return chain((first,), rows)


def send(connection: Connection, statement: sql.Composed) -> None:
    """Send a COPY, alone or as the last of several statements, without waiting for the answer."""
    connection.pgconn.send_query(statement.as_bytes(connection))


def received(connection: Connection) -> Generator[memoryview | bytes, None, None]:
    """Yield the rows of the COPY that was sent, unchanged; the first row of a binary COPY includes the header.

    Closing the generator early stops the COPY and leaves the connection ready for the next statement.
    """
    pgconn = connection.pgconn
    copying = False
    try:
        while not copying:
            copying = _result(connection) == pq.ExecStatus.COPY_OUT
        while copying:
            size, data = pgconn.get_copy_data(1)
            if size > 0:
                yield data
            elif size == 0:
                wait_readable(connection, None)
                pgconn.consume_input()
            else:
                copying = False
        _result(connection)
    finally:
        if copying:
            _abandon(connection)
        while pgconn.status == pq.ConnStatus.OK and pgconn.get_result() is not None:
            pass


def _result(connection: Connection) -> int:
    """Return the status of the next result; raise the server's error if the result is one."""
    pgconn = connection.pgconn
    while pgconn.is_busy():
        wait_readable(connection, None)
        pgconn.consume_input()
    result = pgconn.get_result()
    assert result is not None
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise error_of(result)
    return result.status


def _abandon(connection: Connection) -> None:
    """Stop a COPY that is half read: cancel it, and discard the rows that are still on their way."""
    pgconn = connection.pgconn
    try:
        connection.cancel()
        deadline = time.monotonic() + 10
        while pgconn.get_copy_data(0)[0] > 0 and time.monotonic() < deadline:
            pass
    except psycopg.Error:
        connection.close()


def wait_readable(connection: Connection, timeout: float | None) -> bool:
    """Wait until the server has sent data, for `timeout` seconds at most (None: forever); return whether it has."""
    readable, _, _ = select.select([connection.pgconn.socket], [], [], timeout)
    return bool(readable)
