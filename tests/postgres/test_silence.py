"""A server that is silent while TCP answers, and a server that stops while a session is open."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from psycopg import sql

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.copy_stream import start_copy
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.sessions.replication import Replication
from logicalrep.postgres.sessions.walsender import Walsender
from logicalrep.postgres.silence import SilentServerError, wait_readable
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import Transaction
from logicalrep_protocol.v1 import Text
from tests.postgres.proxy import Proxy, start_proxy_to
from tests.postgres.servers import Database, connect_writer, installation
from tests.waiting import eventually

OPTIONS = PluginOptions(publication_names=("p",), proto_version=4)
FOR_EVER = "options='-c wal_sender_timeout=0'"
"""A server that never ends a session by itself."""


@pytest.fixture
def proxy(db18: Database) -> Iterator[Proxy]:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    with start_proxy_to(db18.server.folder, db18.name) as started_proxy:
        yield started_proxy


def settings(proxy: Proxy, patience: float = 1) -> ConnectionSettings:
    return ConnectionSettings(f"{proxy.dsn} {FOR_EVER}").with_patience(patience)


@contextmanager
def reading(where: ConnectionSettings) -> Iterator[tuple[list[int], Replication]]:
    """Read the slot in a thread, and yield the list of the inserted ids."""
    numbers: list[int] = []
    over = threading.Event()
    with Assembler() as assembler:
        replication = Replication(where, "s", OPTIONS, Intake(assembler))

        def run() -> None:
            for event in chain.from_iterable(replication.rounds(over.is_set)):
                assert isinstance(event, Transaction)
                with event:
                    values = [change.after["id"] for change in event.changes if change.after is not None]
                    numbers.extend(int(value.value) for value in values if isinstance(value, Text))
                replication.acknowledge(replication.position)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield numbers, replication
        finally:
            over.set()
            thread.join(60)
            replication.close()
            assert not thread.is_alive()


def insert(db: Database, first: int, last: int | None = None) -> None:
    db.execute(f"INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series({first}, {last or first}) AS i")


def test_a_walsender_that_falls_silent_is_left_and_its_slot_is_read_on(db18: Database, proxy: Proxy) -> None:
    with reading(settings(proxy)) as (numbers, replication):
        insert(db18, 1)
        eventually(lambda: numbers == [1])
        proxy.freeze()
        insert(db18, 2)
        eventually(lambda: numbers == [1, 2])
        assert replication.traffic.restarts >= 1
        # Nothing passes at all, also to new sessions; and then everything does.
        proxy.freeze(new=True)
        connection_count = proxy.connections()
        insert(db18, 3)
        eventually(lambda: proxy.connections() > connection_count)
        proxy.thaw()
        eventually(lambda: numbers == [1, 2, 3])


def test_a_server_with_nothing_to_send_answers_when_it_is_asked(db18: Database, proxy: Proxy) -> None:
    with Walsender(settings(proxy), "s", OPTIONS) as session:
        received = session.receive(0.1)
        deadline = time.monotonic() + 60
        asked = 0
        while asked < 3:
            assert time.monotonic() < deadline
            received = session.receive(0.1)
            asked += received.keepalive is not None


def test_a_process_that_was_stopped_for_long_has_not_waited_meanwhile(
    db18: Database, proxy: Proxy, clock: list[float]
) -> None:
    with Walsender(settings(proxy), "s", OPTIONS) as session:
        for _ in range(5):
            clock[0] += 3600
            session.receive(0.01)


def test_the_silence_limit_grows_with_each_session_without_progress(proxy: Proxy) -> None:
    with Assembler() as assembler:
        replication = Replication(settings(proxy, 0.2), "s", OPTIONS, Intake(assembler))
        silences: list[float] = []
        rounds = replication.rounds(lambda: False)
        while len(silences) < 4:
            list(next(rounds))
            session = replication.session
            if session is not None and session.silence not in silences:
                silences.append(session.silence)
            if session is not None:
                # No answer is heard.
                session.has_asked = True
        replication.close()
    assert silences == [0.2, 0.4, 0.8, 1.6]


def test_a_working_copy_of_a_slot_is_waited_for_and_a_lost_copy_is_not(db18: Database, proxy: Proxy) -> None:
    insert(db18, 1, 50_000)
    with settings(proxy, 0.3).connect() as connection:
        # The session that checks the server gets its answers.
        connection.connect_observer = lambda _: settings(proxy, 60).connect(is_observer=True)
        assert b"".join(start_copy(connection, sql.SQL("COPY (SELECT 1 FROM pg_sleep(2)) TO STDOUT"))) == b"1\n"
        assert connection.execute("SELECT 2 FROM pg_sleep(2)").fetchone() == (2,)
        rows = start_copy(connection, sql.SQL("COPY (SELECT * FROM public.t) TO STDOUT"))
        next(rows)
        proxy.freeze()
        with pytest.raises(SilentServerError, match=r"\[SERVER_SILENT\].* process \d+ waits for this client"):
            list(rows)
        assert connection.closed
    # Its locks are not kept.
    eventually(lambda: db18.value("SELECT count(*) FROM pg_locks WHERE relation = 'public.t'::regclass") == 0)


@pytest.mark.parametrize("new", [False, True])
def test_a_query_whose_answer_is_lost_is_an_error(db18: Database, proxy: Proxy, new: bool) -> None:
    with settings(proxy, 0.3).connect() as connection:
        proxy.freeze(new=new)
        with pytest.raises(SilentServerError, match=r"silent for 0 s, (though its process|also for another session)"):
            connection.execute("SELECT 1")


class StoppedServer:
    """A server of its own with a slot, which has to stop by itself."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        with connect_writer(server.dsn) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
            create_slot(connection, "s")

    def insert(self, count: int) -> None:
        with connect_writer(self.server.dsn) as connection:
            connection.execute(f"INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, {count}) AS i")

    def stop(self) -> None:
        """Stop it, and check that it has not been killed."""
        self.server.stop()
        assert "database system is shut down" in self.server.log().rpartition("received fast shutdown request")[2]


@pytest.mark.postgres
@pytest.mark.parametrize("most_bytes", [64 << 20, 1])
def test_a_server_can_stop_while_nothing_is_acknowledged_and_while_nothing_is_received(most_bytes: int) -> None:
    """As long as the command starts, its destination is away, or it is paused."""
    with LocalServer(installation(18), wal_sender_timeout="0") as local:
        server = StoppedServer(local)
        options = PluginOptions(publication_names=("p",), proto_version=4, streaming="parallel")
        receiver = ChangeReceiver(ConnectionSettings(local.dsn), "s", options, limits=Limits(received_bytes=most_bytes))
        with receiver:
            receiver.wait_until_started()
            # More than the sockets hold.
            server.insert(20_000)
            eventually(lambda: receiver.wait(0.1))
            server.stop()
            local.start()
            receiver.take()
            with connect_writer(local.dsn) as connection:
                connection.execute("INSERT INTO t VALUES (-1, 'after')")
            eventually(lambda: receiver.wait(0.1) and receiver.take().end > 0)


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2048, reason="it may open too few files")
def test_a_connection_is_waited_for_in_a_process_with_a_thousand_open_files() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = fcntl.fcntl(ours, fcntl.F_DUPFD, 1024)
        try:
            connection: Any = SimpleNamespace(pgconn=SimpleNamespace(socket=number))
            assert not wait_readable(connection, 0)
            theirs.send(b"x")
            assert wait_readable(connection, 10)
        finally:
            os.close(number)
