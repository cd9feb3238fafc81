"""The ends of batches that a receiver has rows for, and the wait for such rows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest

from logicalrep import Lsn
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark import feed_schema
from logicalrep.spark.options import read_options
from logicalrep.spark.peek.admission import ReadLimits
from logicalrep.spark.walsender.backlog import Backlog
from logicalrep.spark.walsender.receiver import SpoolReceiver
from tests.postgres.sending import wait_until_sent
from tests.postgres.servers import Database
from tests.waiting import eventually

FAR = Lsn(1 << 62)


@pytest.fixture
def backlog() -> Backlog:
    """Return a backlog of transactions of ten rows each that end at 100, 200 and 300."""
    backlog = Backlog()
    for end in (100, 200, 300):
        backlog.add(end, 10, 1, 0)
    return backlog


@pytest.mark.parametrize(
    ("start", "changes", "end", "has_rows"),
    [
        (50, None, 350, True),
        (50, 30, 350, True),
        (50, 29, 200, True),
        (50, 5, 100, True),
        (200, 5, 350, True),
        (300, None, 350, False),
        (400, None, 400, False),
    ],
)
def test_a_batch_with_the_last_rows_ends_where_all_is_received(
    backlog: Backlog, start: int, changes: int | None, end: int, has_rows: bool
) -> None:
    assert backlog.end_after(Lsn(start), Lsn(350), ReadLimits(changes, None)) == (end, has_rows)


@pytest.mark.parametrize(("start", "wal", "end"), [(50, 49, 100), (50, 50, 100), (50, 249, 200), (50, 250, 350)])
def test_a_batch_of_so_much_wal(backlog: Backlog, start: int, wal: int, end: int) -> None:
    assert backlog.end_after(Lsn(start), Lsn(350), ReadLimits(wal=wal)) == (end, True)


def test_a_transaction_whose_position_is_not_known_yet(backlog: Backlog) -> None:
    assert backlog.end_after(Lsn(50), Lsn(250), ReadLimits(None, None)) == (300, True)


@pytest.fixture
def receiver(db18: Database) -> Iterator[SpoolReceiver]:
    """Yield a receiver that has received three transactions of ten rows each; further ones wait until Spark does."""
    db18.execute("CREATE TABLE t (id int)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    for _ in range(3):
        _insert_ten_rows(db18)
    options = read_options({"dsn": db18.dsn, "slot": "s", "publication": "p"})
    plugin = options.plugin_options(newest_protocol(db18.connection))
    receiver = SpoolReceiver(options, plugin, feed_schema(), None, gathering_seconds=math.inf)
    try:
        assert receiver.wait(Lsn(0), 60, FAR, ReadLimits(30))
        yield receiver
    finally:
        receiver.stop()


def _insert_ten_rows(db: Database) -> None:
    db.execute("INSERT INTO t SELECT generate_series(1, 10)")


def test_a_batch_waits_until_it_has_enough(receiver: SpoolReceiver, db18: Database) -> None:
    size = receiver.counts(Lsn(0), FAR).bytes
    assert size is not None
    assert receiver.wait(Lsn(0), 0, FAR, ReadLimits(31, size))
    assert not receiver.wait(Lsn(0), 0.1, FAR, ReadLimits(31, size + 1))
    first, _ = receiver.end_after(Lsn(0), ReadLimits(10))
    assert receiver.wait(first, 0, FAR, ReadLimits(20))
    assert not receiver.wait(first, 0.1, FAR, ReadLimits(21))
    _insert_ten_rows(db18)
    assert receiver.wait(first, 60, FAR, ReadLimits(21))
    assert receiver.counts(first, FAR).changes == 30


def test_a_batch_waits_until_it_has_all_there_is(receiver: SpoolReceiver, db18: Database) -> None:
    assert receiver.wait(Lsn(0), 60, query_wal_head(db18.connection), ReadLimits(31))
    last, _ = receiver.end_after(Lsn(0), ReadLimits())
    assert not receiver.wait(last, 0.1)
    _insert_ten_rows(db18)
    assert receiver.wait(last, 60)


def test_a_batch_waits_for_a_time_at_most(receiver: SpoolReceiver) -> None:
    began = time.monotonic()
    assert not receiver.wait(Lsn(0), 0.2, FAR, ReadLimits(31))
    assert time.monotonic() - began >= 0.2


@pytest.fixture
def gathering(receiver: SpoolReceiver, db18: Database) -> SpoolReceiver:
    """Return the receiver while ten more rows that the server has sent wait for further ones."""
    wait_until_sent(db18)
    last, _ = receiver.end_after(Lsn(0), ReadLimits())
    receiver.wait(last, 0)
    _insert_ten_rows(db18)
    wait_until_sent(db18)
    return receiver


def test_messages_wait_for_further_ones_while_spark_is_busy(gathering: SpoolReceiver, db18: Database) -> None:
    last, _ = gathering.end_after(Lsn(0), ReadLimits())
    _insert_ten_rows(db18)
    wait_until_sent(db18)
    assert gathering.counts(Lsn(0), FAR).changes == 30
    assert gathering.wait(last, 60)
    assert gathering.counts(last, FAR).changes == 20


def test_a_planned_batch_is_received_while_messages_wait(gathering: SpoolReceiver, db18: Database) -> None:
    assert gathering.partitions(Lsn(0), query_wal_head(db18.connection), lambda decision: True)
    assert gathering.counts(Lsn(0), FAR).changes == 40


def test_a_commit_is_acknowledged_while_messages_wait(gathering: SpoolReceiver, db18: Database) -> None:
    last, _ = gathering.end_after(Lsn(0), ReadLimits(10))
    gathering.commit(last)
    eventually(lambda: query_slot(db18.connection, "s").confirmed.lsn == last)


def test_a_receiver_stops_while_messages_wait(gathering: SpoolReceiver, db18: Database) -> None:
    gathering.stop()
    assert query_slot(db18.connection, "s").active_pid is None
