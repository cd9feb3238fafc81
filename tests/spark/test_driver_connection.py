"""The connection of a query's driver, which breaks and is opened again."""

from __future__ import annotations

import time

import psycopg
import pytest

from logicalrep.postgres.server import Connection
from logicalrep.spark.options import read_options
from logicalrep.spark.server_connection import Driver
from tests.postgres.servers import Database


def test_a_connection_that_breaks_after_long_work(db18: Database) -> None:
    """`retry_timeout` counts only from the first failure on."""
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    options = {"dsn": db18.dsn, "slot": "s", "publication": "p", "create_slot": "true", "retry_timeout": "0.5"}
    driver = Driver(read_options(options), lambda _: None)
    pids: list[int] = []

    def work(connection: Connection) -> None:
        pids.append(connection.info.backend_pid)
        if len(pids) == 1:
            time.sleep(0.7)
            db18.execute(f"SELECT pg_terminate_backend({pids[0]}, 5000)")
        connection.execute("SELECT 1")

    driver.run(work)
    assert len(set(pids)) == 2

    def fail(connection: Connection) -> None:
        db18.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")
        connection.execute("SELECT 1")

    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        driver.run(fail)
    assert time.monotonic() - began > 0.5
    driver.stop()
