"""A server that is away is waited for, for as long as it takes, and one line a minute says so."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from logicalrep.observe.events import RunEvent, WaitEnded, WaitReported, WarningIssued
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.postgres.connection import ConnectError, ConnectionSettings
from logicalrep.postgres.local_server import LocalServer
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_meanwhile
from tests.postgres.servers import Database, connect_writer, installation
from tests.waiting import eventually

pytestmark = pytest.mark.postgres


class LinePrinter(Observer):
    """Holds the lines about what the work waits for."""

    def __init__(self) -> None:
        self.waited: list[str] = []
        self.warnings: list[str] = []
        self.ended: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case WaitReported(text):
                self.waited.append(text)
            case WaitEnded(text):
                self.ended.append(text)
            case WarningIssued(text):
                self.warnings.append(text)


def test_a_server_that_is_away_at_first_and_later_is_waited_for(tmp_path: Path) -> None:
    with LocalServer(installation(18)) as server:
        database = Database(server, "postgres", 18, connect_writer(server.dsn))
        database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        database.connection.close()
        server.stop()
        lines, lake = LinePrinter(), tmp_path / "lake"
        with replicate_meanwhile(database, lake, lines) as caught_up:
            eventually(lambda: bool(lines.waited))
            server.start()
            database.reconnect()
            caught_up()
            database.connection.close()
            server.stop()
            server.start()
            database.reconnect()
            database.execute("INSERT INTO t VALUES (2)")
            caught_up()
            assert find_differences(server.dsn, str(lake), ["public.t"]) == {}
            assert lines.ended[0].startswith("the server answers again, after ")
            database.connection.close()
            server.stop()
            # Leaving the context ends it, while the server is away.
        assert lines.waited[0].startswith("the server cannot be reached, trying again: ")
        assert all("did not wait for this to pass" in text for text in lines.warnings), lines.warnings


def test_once_waits_for_the_given_time(tmp_path: Path) -> None:
    nobody = ConnectionSettings(f"host={tmp_path} dbname=d user=u")
    settings = ReplicateSettings(dsn=nobody, to=str(tmp_path / "lake"), once=True, retry_timeout=0.2)
    with pytest.raises(ConnectError, match=r"\[SERVER_AWAY\].*; tried for 0\."):
        replicate_with(settings, Observers(), engine=SequentialEngine(), stop=threading.Event())
