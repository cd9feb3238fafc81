"""COPY … TO STDOUT as raw bytes, without a Python object for each value. Needs psycopg 3."""

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
"""The longest time to stop an unfinished COPY, in seconds."""


def start_copy(connection: Connection, statement: sql.Composed) -> Iterator[memoryview | bytes]:
    """Send a COPY and return its rows after the first has arrived, so that early errors are raised here."""
    send(connection, statement)
    rows = receive_rows(connection)
    first = next(rows, b"")
    return chain((first,), rows)


def send(connection: Connection, statement: sql.Composed) -> None:
    """Send a COPY, or several statements that end with a COPY, without waiting for the answer."""
    connection.pgconn.send_query(statement.as_bytes(connection))


def receive_rows(connection: Connection) -> Generator[memoryview | bytes, None, None]:
    """The first row of a binary COPY includes the header. After an early close, the connection can be used."""
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
    result = next_result(connection)
    assert result is not None
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise error_of(result)
    return result.status


def _abandon(connection: Connection) -> None:
    # Rows sent before the cancellation are discarded.
    pgconn = connection.pgconn
    try:
        connection.cancel_safe(timeout=_ABANDONING)
        deadline = time.monotonic() + _ABANDONING
        while (size := pgconn.get_copy_data(1)[0]) >= 0:
            seconds_left = deadline - time.monotonic()
            if seconds_left < 0:
                connection.close()
                return
            if size == 0 and wait_readable(connection, seconds_left):
                pgconn.consume_input()
    except psycopg.Error:
        connection.close()
