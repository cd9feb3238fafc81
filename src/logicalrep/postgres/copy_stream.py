"""COPY … TO STDOUT in the bytes that the server sends, without a Python object for each value. Needs psycopg 3."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from itertools import chain

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import error_of
from logicalrep.postgres.server import Connection
from logicalrep.postgres.silence import next_result, receive_data, wait_readable

_ABANDONING = 10.0
"""The longest time for the end of a COPY that is not read to its end, in seconds."""


def start_copy(connection: Connection, statement: sql.Composed) -> Iterator[memoryview | bytes]:
    """Send a COPY and return its rows once the first has arrived, so that an early error is raised here."""
    send(connection, statement)
    rows = receive_rows(connection)
    first = next(rows, b"")
    return chain((first,), rows)


def send(connection: Connection, statement: sql.Composed) -> None:
    """Send a COPY, alone or as the last of several statements, without waiting for the answer."""
    connection.pgconn.send_query(statement.as_bytes(connection))


def receive_rows(connection: Connection) -> Generator[memoryview | bytes, None, None]:
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
                receive_data(connection)
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
    result = next_result(connection)
    assert result is not None
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise error_of(result)
    return result.status


def _abandon(connection: Connection) -> None:
    """Stop a COPY that is half read: cancel it, and discard the rows that are still on their way."""
    pgconn = connection.pgconn
    try:
        connection.cancel_safe(timeout=_ABANDONING)
        deadline = time.monotonic() + _ABANDONING
        while (size := pgconn.get_copy_data(1)[0]) >= 0:
            left = deadline - time.monotonic()
            if left < 0:
                connection.close()
                return
            if size == 0 and wait_readable(connection, left):
                pgconn.consume_input()
    except psycopg.Error:
        connection.close()
