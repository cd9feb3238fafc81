"""Timelines: which positions belong to the WAL of a server that takes over or is restored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import psycopg
import pytest

from logicalrep import Lsn
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.sessions.replication import Replication
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.positions import check_within_wal
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep.postgres.timelines import Timeline, WalPosition, query_switch_points
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import Transaction
from tests.postgres.servers import SERVERS, back_up, connect_writer, installation, take_over

pytestmark = pytest.mark.postgres

_OPTIONS = PluginOptions(publication_names=("p",), proto_version=3)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a server with a table, a publication and a slot."""
    with LocalServer(installation(request.param)) as server:
        with connect_writer(server.dsn) as connection:
            connection.execute("CREATE ROLE reader LOGIN REPLICATION")
            connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
            connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
            create_slot(connection, "s")
        yield server


def test_a_position_is_of_the_timeline_on_which_it_was_reached(server: LocalServer, tmp_path: Path) -> None:
    settings = ConnectionSettings(server.dsn_as("reader"))
    first = _query_slot(settings)
    assert first.timeline is not None
    assert first.timeline.id == 1
    assert query_switch_points(settings, 1) == {}
    back_up(server, tmp_path / "backup")
    then = _query_slot(settings).reached
    take_over(server, tmp_path / "backup")
    slot = _query_slot(settings)
    (switch_point,) = query_switch_points(settings, 2).values()
    assert slot.timeline == replace(first.timeline, id=2, began=switch_point)
    assert then.lsn <= switch_point <= slot.head

    def check(lsn: int, timeline: Timeline | None = first.timeline) -> None:
        check_within_wal(settings, slot, WalPosition(Lsn(lsn), timeline))

    check(switch_point)
    check(slot.head, slot.timeline)
    check(slot.head, None)
    with pytest.raises(
        LostPositionError, match=f"of timeline 1, but the server is on timeline 2, .* left it at {switch_point}:"
    ):
        check(switch_point + 1)
    with pytest.raises(LostPositionError, match=r"of timeline 3, .* on timeline 2, which does not descend from it:"):
        check(switch_point, replace(first.timeline, id=3))
    other = replace(first.timeline, system_identifier=first.timeline.system_identifier + 1)
    with pytest.raises(
        LostPositionError, match=f"but the server is system {first.timeline.system_identifier}: .*another"
    ):
        check(switch_point, other)
    with pytest.raises(LostPositionError, match=f"the server's WAL ends at {slot.head}: "):
        check(slot.head + 1, slot.timeline)
    with pytest.raises(psycopg.Error, match=r"0000000A\.history"):
        query_switch_points(settings, 10)


@pytest.mark.parametrize("server", [18], indirect=True)
def test_two_servers_promoted_from_one_backup(server: LocalServer, tmp_path: Path) -> None:
    """Both continue on a timeline 2, and only its start tells them apart."""
    settings = ConnectionSettings(server.dsn_as("reader"))
    for name in ("first", "second"):
        back_up(server, tmp_path / name)
        with connect_writer(server.dsn) as connection:
            connection.execute("INSERT INTO t SELECT coalesce(max(id), 0) + 1 FROM t")
    take_over(server, tmp_path / "second")
    of_second = _query_slot(settings).timeline
    assert of_second is not None
    assert of_second.began is not None
    take_over(server, tmp_path / "first")
    with connect_writer(server.dsn) as connection:
        connection.execute("INSERT INTO t SELECT generate_series(10, 1000)")
    slot = _query_slot(settings)
    assert slot.timeline is not None
    assert slot.timeline.began is not None
    assert slot.timeline == replace(of_second, began=slot.timeline.began)
    assert slot.timeline.began < of_second.began < slot.head
    read = WalPosition(Lsn(of_second.began + 1), of_second)
    reason = f"a timeline 2 that began at {of_second.began}, but the server's timeline 2 began at {slot.timeline.began}"
    with pytest.raises(LostPositionError, match=reason):
        check_within_wal(settings, slot, read)
    # The start may be unknown; and the part that both have is not lost.
    check_within_wal(settings, slot, replace(read, timeline=replace(of_second, began=None)))
    check_within_wal(settings, slot, replace(read, lsn=slot.timeline.began))
    back_up(server, tmp_path / "third")
    take_over(server, tmp_path / "third")
    third = _query_slot(settings)
    assert third.timeline is not None
    assert third.timeline.id == 3
    with pytest.raises(LostPositionError, match=reason):
        check_within_wal(settings, third, read)
    check_within_wal(settings, third, slot.reached)
    # Only a walsender knows a timeline's start, while the history exists; otherwise it is unknown.
    with connect_writer(server.dsn) as connection:
        connection.execute("ALTER SYSTEM SET max_wal_senders = 0")
    server.stop()
    server.start()
    assert _query_slot(settings).timeline == replace(third.timeline, began=None)
    with connect_writer(server.dsn) as connection:
        connection.execute("ALTER SYSTEM RESET max_wal_senders")
    server.stop()
    (server.data / "pg_wal" / "00000003.history").unlink()
    server.start()
    assert _query_slot(settings).timeline == replace(third.timeline, began=None)


def test_a_standby_has_no_timeline_of_its_own(server: LocalServer) -> None:
    server.stop()
    (server.data / "standby.signal").touch()
    server.start()
    assert _query_slot(ConnectionSettings(server.dsn)).timeline is None


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_server_takes_over_while_a_reader_is_connected(server: LocalServer, tmp_path: Path, is_behind: bool) -> None:
    """A server that is behind has other transactions at LSNs that the reader has passed."""
    settings = ConnectionSettings(server.dsn)
    lsns: list[int] = []

    def insert(*transactions: int) -> None:
        with connect_writer(server.dsn) as connection:
            for number in transactions:
                connection.execute("INSERT INTO t VALUES (%s)", (number,))

    def read(count: int) -> None:
        for event in chain.from_iterable(replication.rounds(lambda: len(lsns) >= count)):
            assert isinstance(event, Transaction)
            lsns.append(event.commit_lsn)
            event.close()

    insert(1)
    back_up(server, tmp_path / "backup")
    with Assembler() as assembler:
        replication = Replication(settings, "s", _OPTIONS, Intake(assembler))
        read(1)
        if is_behind:
            insert(*range(2, 100))
            read(99)
        take_over(server, tmp_path / "backup")
        insert(*range(100, 400))
        if is_behind:
            with pytest.raises(LostPositionError, match="which left it at"):
                read(100)
        else:
            read(301)
            assert replication.timeline is not None
            assert replication.timeline.id == 2
        replication.close()
    assert lsns == sorted(set(lsns))
    assert len(lsns) == (99 if is_behind else 301)


def _query_slot(settings: ConnectionSettings) -> Slot:
    with settings.connect() as connection:
        return query_slot(connection, "s")
