"""The connection that survives the server's restarts."""

from __future__ import annotations

import psycopg
import pytest

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.postgres.sessions.server_connection import ServerConnection
from tests.postgres.servers import Database


def _query_pid(connection: Connection) -> int:
    connection.execute("SELECT 1")
    return connection.info.backend_pid


def _bound_lock_waits(connection: Connection) -> None:
    connection.execute("SET lock_timeout = '7s'")


def test_each_new_connection_is_prepared_and_each_failure_reported(db18: Database) -> None:
    failures: list[str] = []
    server = ServerConnection(
        ConnectionSettings(db18.dsn),
        30,
        prepare=_bound_lock_waits,
        on_failure=lambda: failures.append("server"),
    )
    assert server.restarts == 0
    first = server.run(_query_pid)
    assert (server.run(_query_pid), server.restarts, failures) == (first, 0, [])
    db18.execute(f"SELECT pg_terminate_backend({first}, 5000)")
    assert server.run(lambda connection: query_scalar(connection, "SHOW lock_timeout")) == "7s"
    assert server.run(_query_pid) != first
    assert (server.restarts, failures) == (1, ["server"])
    server.close()


def test_a_connection_that_cannot_be_prepared_is_closed(db18: Database) -> None:
    opened: list[Connection] = []

    def refuse(connection: Connection) -> None:
        opened.append(connection)
        connection.execute("SELECT 1 / 0")

    server = ServerConnection(ConnectionSettings(db18.dsn), 30, prepare=refuse)
    with pytest.raises(psycopg.errors.DivisionByZero):
        server.run(_query_pid)
    assert ([connection.closed for connection in opened], server.restarts) == ([True], 0)
