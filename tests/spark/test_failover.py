"""A server dies and a standby takes over: a failover slot continues there, with exactly the new server's changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.slot import query_slot
from tests.postgres.servers import Database, connect_writer, installation, start_standby_of
from tests.spark.streams import EACH_MODE, Stream
from tests.waiting import eventually


@pytest.fixture
def primary() -> Iterator[Database]:
    """Yield a database with a table and a publication; its failover slots wait for the standby."""
    with LocalServer(installation(18), synchronized_standby_slots="standby") as server:
        database = Database(server, "postgres", 18, connect_writer(server.dsn))
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY GENERATED ALWAYS AS IDENTITY)", "CREATE PUBLICATION p FOR ALL TABLES"
        )
        yield database


@pytest.mark.thorough
@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_standby_takes_over(spark: Any, primary: Database, tmp_path: Path, mode: str) -> None:
    with start_standby_of(primary.server, tmp_path / "backup") as standby:
        primary.reconnect()
        servers = f"host={primary.server.folder},{standby.folder} target_session_attrs=read-write"
        dsn = f"{servers} user=postgres dbname=postgres"
        stream = Stream(spark, primary, tmp_path, dsn=dsn, mode=mode, create_slot="true", failover="true")
        stream.run()
        query = stream.start()
        with connect_writer(standby.dsn) as connection:
            eventually(lambda: _is_kept(primary.connection, connection), query)
        old_rows = _rows(primary.connection)
        eventually(lambda: _ids(stream) == old_rows, query)
        query.stop()
        # Changes that the standby lacks are not read, as they would be lost in a failover; nor does a new walsender
        # send the standby's changes beyond the query's position.
        primary.execute("SELECT pg_log_standby_snapshot()")
        eventually(lambda: not query_slot(primary.connection, "spark").waits_for_standbys)
        standby.stop()
        _insert(primary.connection)
        stream.run(retry_timeout="5")
        assert _ids(stream) == old_rows
        standby.start()
        query = stream.start()
        eventually(lambda: _ids(stream) == _rows(primary.connection), query)
        old_rows = _rows(primary.connection)
        for _ in range(100):
            _insert(primary.connection)
        primary.server.stop("immediate")
        with connect_writer(standby.dsn) as connection:
            connection.execute("SELECT pg_promote()")
            _insert(connection)
            new_rows = _rows(connection)
        assert new_rows > old_rows
        eventually(lambda: _ids(stream) == new_rows, query)
        query.stop()
        assert stream.frame().count() == len(new_rows)


def _insert(connection: Connection) -> None:
    connection.execute("INSERT INTO t DEFAULT VALUES")


def _rows(connection: Connection) -> set[int]:
    return {row[0] for row in connection.execute("SELECT id FROM t").fetchall()}


def _ids(stream: Stream) -> set[int]:
    return {int(row.after["id"]) for row in stream.frame().collect()}


def _is_kept(primary: Connection, standby: Connection) -> bool:
    """Return whether the standby would keep the slot after a failover, as it does once the slot has advanced."""
    _insert(primary)
    primary.execute("SELECT pg_log_standby_snapshot()")
    query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'spark' AND synced AND NOT temporary"
    return standby.execute(query).fetchone() is not None
