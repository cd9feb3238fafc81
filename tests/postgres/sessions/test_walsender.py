"""The replication connection: its messages, its acknowledgements, and its reaction when the server goes away."""

from __future__ import annotations

import math
import time
from itertools import chain
from pathlib import Path

import psycopg
import pytest

from logicalrep import DecodeError, Lsn, TimestampTz, walsender
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import PublicationError
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep.postgres.sessions.replication import Replication
from logicalrep.postgres.sessions.walsender import Received, Walsender, receive_messages
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import Transaction
from tests.postgres.servers import Database, back_up, connect_writer, installation, restore
from tests.waiting import eventually


@pytest.fixture
def options(db: Database) -> PluginOptions:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db.connection, "s")
    version = newest_protocol(db.connection)
    return PluginOptions(publication_names=("p",), proto_version=version, streaming="parallel" if version > 3 else "on")


def receive(session: Walsender, until: int) -> list[bytes]:
    """Return the messages up to the given number of commits."""
    messages: list[bytes] = []
    deadline = time.monotonic() + 20
    while sum(data[:1] in (b"C", b"c") for data in messages) < until:
        assert time.monotonic() < deadline
        messages += [data for _, data in session.receive(0.1).messages]
    return messages


def test_small_and_streamed_transactions(db: Database, options: PluginOptions) -> None:
    with Walsender(db.settings, "s", options) as session:
        db.execute("INSERT INTO t VALUES (1, 'x')")
        assert [data[:1] for data in receive(session, 1)] == [b"B", b"R", b"I", b"C"]
        db.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(2, 3000) AS i")
        tags = [data[:1] for data in receive(session, 1)]
        assert (tags[0], tags[-1]) == (b"S", b"c")
        assert tags.count(b"I") == 2999


def test_a_publication_that_was_dropped(db: Database, options: PluginOptions) -> None:
    """PostgreSQL 18 would leave out the later changes, and continue once a publication of that name exists."""
    with Walsender(db.settings, "s", options) as session:
        db.execute("INSERT INTO t VALUES (1)")
        receive(session, 1)
        db.execute("DROP PUBLICATION p", "INSERT INTO t VALUES (2)", "CREATE PUBLICATION p FOR ALL TABLES")
        db.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(PublicationError, match=r'publication "p".* make a new slot'):
            receive(session, 1)
    with Walsender(db.settings, "s", options) as session, pytest.raises(PublicationError):
        receive(session, 3)


def test_a_server_that_is_soon_out_of_patience(db: Database, options: PluginOptions) -> None:
    settings = ConnectionSettings(db.dsn, options="-c wal_sender_timeout=1s")
    with Walsender(settings, "s", options) as session:
        for _ in range(25):
            time.sleep(0.1)
            session.report_in_time()
        db.execute("INSERT INTO t VALUES (1)")
        assert receive(session, 1)


def test_acknowledged_changes_are_not_sent_again(db: Database, options: PluginOptions) -> None:
    with Walsender(db.settings, "s", options) as session:
        db.execute("INSERT INTO t VALUES (1)")
        receive(session, 1)
        end = query_wal_head(db.connection)
        db.execute("INSERT INTO t VALUES (2)")
        receive(session, 1)
        session.acknowledge(end)
        for _ in range(100):
            if query_slot(db.connection, "s").confirmed_flush_lsn == end:
                break
            time.sleep(0.05)
        assert query_slot(db.connection, "s").confirmed_flush_lsn == end
    with Walsender(db.settings, "s", options, position=end) as session:
        assert session.started_at == end
        (insert,) = (data for data in receive(session, 1) if data[:1] == b"I")
        assert insert.endswith(b"2n")


def test_a_closed_session_has_acknowledged_its_last_position(db: Database, options: PluginOptions) -> None:
    for number in range(1, 11):
        with Walsender(db.settings, "s", options) as session:
            db.execute(f"INSERT INTO t VALUES ({-number})")
            receive(session, 1)
            end = query_wal_head(db.connection)
            # What lies unread in the socket when it is closed.
            db.execute("DELETE FROM t WHERE id > 0", "INSERT INTO t SELECT generate_series(1, 2000)")
            session.acknowledge(end)
        eventually(lambda: query_slot(db.connection, "s").active_pid is None)
        assert query_slot(db.connection, "s").confirmed_flush_lsn == end


def test_a_lost_position_is_an_error(db: Database, options: PluginOptions) -> None:
    slot = query_slot(db.connection, "s")
    db.execute("INSERT INTO t VALUES (1)")
    advance_slot(db.connection, slot, query_wal_head(db.connection))
    with pytest.raises(LostPositionError, match="acknowledged by another reader"):
        Walsender(db.settings, "s", options, position=slot.confirmed.lsn)


def test_keepalives_tell_how_far_an_idle_server_is(db: Database, options: PluginOptions) -> None:
    with Walsender(db.settings, "s", options) as session:
        db.execute("CREATE TABLE unrelated (a int)")
        head = query_wal_head(db.connection)
        deadline = time.monotonic() + 20
        while session.received < head:
            assert time.monotonic() < deadline
            session.receive(0.1)


def test_a_restart_of_the_server_loses_and_doubles_nothing(db: Database, options: PluginOptions) -> None:
    counts: list[int] = []
    with Assembler() as assembler:
        replication = Replication(db.settings, "s", options, Intake(assembler))
        db.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 2000) AS i")
        stage = 0
        deadline = time.monotonic() + 60
        for event in chain.from_iterable(replication.rounds(lambda: len(counts) >= 4 or time.monotonic() > deadline)):
            assert isinstance(event, Transaction)
            counts.append(len(event.changes))
            event.close()
            if len(counts) == 1 and stage == 0:
                stage = 1
                db.execute("INSERT INTO t VALUES (10000)", "CHECKPOINT", "INSERT INTO t VALUES (10001)")
                db.server.stop("immediate")
                db.server.start()
                db.reconnect()
                db.execute("INSERT INTO t VALUES (10002)")
        replication.close()
    assert counts == [2000, 1, 1, 1]


@pytest.mark.postgres
def test_a_server_that_is_behind_the_reader_is_an_error(tmp_path: Path) -> None:
    """Such a server took over from another without all changes that were read from that."""
    with LocalServer(installation(18)) as server, Assembler() as assembler:
        settings = ConnectionSettings(server.dsn)
        with connect_writer(server.dsn) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
            connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
            create_slot(connection, "s")
        back_up(server, tmp_path / "behind")
        with connect_writer(server.dsn) as connection:
            connection.execute("INSERT INTO t SELECT generate_series(1, 1000)")
        options = PluginOptions(publication_names=("p",), proto_version=4)
        replication = Replication(settings, "s", options, Intake(assembler))
        deadline = time.monotonic() + 20
        events = chain.from_iterable(replication.rounds(lambda: time.monotonic() > deadline))
        event = next(events)
        assert isinstance(event, Transaction)
        assert len(event.changes) == 1000
        event.close()
        restore(server, tmp_path / "behind")
        with pytest.raises(LostPositionError, match="this reader is at"):
            list(events)
        replication.close()


def test_an_acknowledgement_waits_for_what_is_not_handed_on(db: Database, options: PluginOptions) -> None:
    with Assembler() as assembler:
        replication = Replication(db.settings, "s", options, Intake(assembler))
        db.execute("INSERT INTO t VALUES (1)")
        next(chain.from_iterable(replication.rounds(lambda: False)))
        position = replication.position
        replication.acknowledge(position)
        deadline = time.monotonic() + 20
        while query_slot(db.connection, "s").confirmed_flush_lsn != position:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert position > Lsn(0)
        replication.close()


class Copied:
    """A stand-in for a connection whose server has sent these bytes, and then ends."""

    def __init__(self, *sent: bytes) -> None:
        self.pgconn = self
        self._sent = list(sent)

    def get_copy_data(self, _: int) -> tuple[int, memoryview]:
        if not self._sent:
            return -1, memoryview(b"")
        data = self._sent.pop(0)
        return len(data), memoryview(data)

    def get_result(self) -> None:
        return None

    def add_notice_handler(self, handler: object) -> None:
        """Ignore the handler: there are no notices."""

    def remove_notice_handler(self, handler: object) -> None:
        """Ignore the handler: there are no notices."""


def x_log_data(lsn: int, payload: bytes) -> bytes:
    return walsender.XLogData(
        start_lsn=Lsn(lsn), end_lsn=Lsn(lsn), send_timestamp=TimestampTz(0), payload=payload
    ).build()


def test_messages_come_many_at_a_time_up_to_a_keepalive() -> None:
    keepalive = walsender.PrimaryKeepaliveMessage(
        end_lsn=Lsn(50), send_timestamp=TimestampTz(0), reply_requested=False
    ).build()
    high = (1 << 64) - 2
    connection = Copied(x_log_data(7, b"B"), x_log_data(3, b""), keepalive, *[x_log_data(high, b"C")] * 5)
    received = receive_messages(connection, 1, 10)
    assert received == Received([x_log_data(7, b"B"), x_log_data(3, b"")], Lsn(50))
    assert (received.messages, received.last) == ([(7, b"B"), (3, b"")], 50)
    received = receive_messages(connection, 1, 3)
    assert (received.messages, received.last) == ([(high, b"C")] * 3, high)
    assert receive_messages(connection, 1, 2).messages == [(high, b"C")] * 2
    with pytest.raises(psycopg.OperationalError, match="ended the replication"):
        receive_messages(connection, 1, 2)


def test_small_transactions_are_gathered(db: Database) -> None:
    db.execute("CREATE TABLE t (id int)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db.connection, "s")
    options = PluginOptions(publication_names=("p",), proto_version=1)
    with Walsender(db.settings, "s", options, gathers_until=lambda size, began: began + 3600) as session:
        db.execute("INSERT INTO t VALUES (2)")
        db.execute("INSERT INTO t VALUES (3)")
        messages: list[tuple[int, bytes]] = []
        # A keepalive that comes before them ends a result.
        while not messages:
            messages = session.receive(10, 7).messages
        assert b"".join(data[:1] for _, data in messages) == b"BRICBIC"


def _without_end(size: int, began: float) -> float:
    return math.inf


@pytest.mark.parametrize("asks", [False, True])
def test_messages_that_come_soon_after_others_are_waited_for(asks: bool) -> None:
    keepalive = walsender.PrimaryKeepaliveMessage(
        end_lsn=Lsn(50), send_timestamp=TimestampTz(0), reply_requested=asks
    ).build()
    connection = Copied(keepalive, x_log_data(60, b"B"), keepalive, x_log_data(70, b"C"))
    assert receive_messages(connection, 1, 2, _without_end) == Received([], Lsn(50), asks)
    received = receive_messages(connection, 1, 2, _without_end)
    # The server waits for the answer to one that asks.
    assert received.messages == ([(60, b"B")] if asks else [(60, b"B"), (70, b"C")])
    assert (received.keepalive, received.asks) == ((Lsn(50), True) if asks else (None, False))


@pytest.mark.parametrize("data", [x_log_data(1, b"")[:-1], b"w", b"k", b"x" + bytes(30)])
def test_an_envelope_that_is_none_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        receive_messages(Copied(x_log_data(1, b"B"), data), 1, 10)
