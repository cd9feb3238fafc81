"""The ends of peek batches: within the limits, and never within a transaction."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from logicalrep import Lsn, v1
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark.options import read_options
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL, ReadLimits, limits_of, read_limit
from logicalrep.spark.peek.pace import Pace
from logicalrep.spark.peek.planning import Planner
from tests.postgres.servers import Database
from tests.spark.queries import Query, new_values
from tests.spark.transactions import write_transactions

OPTIONS = PluginOptions(publication_names=("p",), proto_version=1)


@pytest.fixture
def db(db18: Database) -> Database:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    return db18


def end(db: Database, limits: ReadLimits, start: Lsn | None = None, planner: Planner | None = None) -> Lsn | None:
    start = query_slot(db.connection, "s").confirmed.lsn if start is None else start
    return (planner or Planner("s", OPTIONS)).end(db.connection, start, query_wal_head(db.connection), limits)


def test_limits_larger_than_the_backlog(db: Database) -> None:
    write_transactions(db, count=6, rows=20_000)
    for limits in (ReadLimits(bytes=1 << 30), ReadLimits(changes=3_000_000_000), ReadLimits(1 << 60, 1 << 60)):
        # The server itself writes some WAL now and then.
        head = query_wal_head(db.connection)
        batch_end = end(db, limits)
        assert batch_end is not None
        assert head <= batch_end <= query_wal_head(db.connection)


def test_more_messages_than_are_expected(db: Database) -> None:
    """Small transactions have more messages for each change, and for each byte, than others."""
    write_transactions(db, count=3, rows=1, width=20_000)
    planner = Planner("s", OPTIONS)
    db.execute("TRUNCATE t")
    start = end(db, ReadLimits(bytes=1 << 30), planner=planner)
    write_transactions(db, count=100, rows=1)
    limits = ReadLimits(bytes=4000)
    few = end(db, limits, start, planner)
    assert few == end(db, limits, start)
    assert few is not None
    messages = [v1.parse(data) for _, data in peek(db.connection, "s", OPTIONS, upto_lsn=few)]
    assert 54 < sum(isinstance(message, v1.Commit) for message in messages) < 104
    ends = [message.end_lsn for message in messages if isinstance(message, v1.Commit)]
    # One of the changes is the TRUNCATE.
    assert end(db, ReadLimits(changes=50)) == ends[49]


def test_limits_hold_to_the_byte_and_the_change(db: Database) -> None:
    write_transactions(db, count=20, rows=3, width=7)
    ends: list[Lsn] = []
    sizes = [0]
    for _, data in peek(db.connection, "s", OPTIONS):
        sizes[-1] += len(data)
        message = v1.parse(data)
        if isinstance(message, v1.Commit):
            ends.append(message.end_lsn)
            sizes.append(0)
    sizes = list(accumulate(sizes[:-1]))
    planner = Planner("s", OPTIONS)
    for number in (1, 2, 10, 19):
        assert end(db, ReadLimits(bytes=sizes[number - 1]), planner=planner) == ends[number - 1]
        assert end(db, ReadLimits(bytes=sizes[number] - 1), planner=planner) == ends[number - 1]
        assert end(db, ReadLimits(changes=3 * number), planner=planner) == ends[number - 1]
        assert end(db, ReadLimits(changes=3 * number + 2), planner=planner) == ends[number - 1]
    for limits in (ReadLimits(bytes=1), ReadLimits(changes=1)):
        assert end(db, limits) == ends[0]
        assert end(db, limits, start=ends[4]) == ends[5]
    assert end(db, ReadLimits(changes=6), start=ends[4], planner=planner) == ends[6]


def test_batches_of_so_much_wal(db: Database, tmp_path: Path) -> None:
    """A larger transaction is a batch of its own, without empty batches before it."""
    write_transactions(db, count=40, rows=100, width=50)
    db.execute("INSERT INTO t SELECT i, repeat('x', 50) FROM generate_series(4000, 12000 - 1) AS i")
    query = Query(db, tmp_path, mode="peek", max_wal_per_batch="128k")
    rows: list[str] = []
    sizes: list[int] = []
    while len(rows) < 12_000:
        rows += new_values(query.plan())
        sizes.append(Lsn(query.end["lsn"]) - Lsn(query.start["lsn"]))
        query.commit()
    query.restart(reopen=False)
    assert rows == [str(number) for number in range(12_000)]
    assert max(sizes[:-1]) <= 128 << 10 < 512 << 10 < sizes[-1]
    assert 4 < len(sizes) < 15


def test_a_limit_on_wal_beside_one_on_changes(db: Database) -> None:
    write_transactions(db, count=40, rows=100, width=50)
    start = query_slot(db.connection, "s").confirmed.lsn
    both = end(db, ReadLimits(changes=1_000_000, wal=128 << 10))
    assert both is not None
    assert 64 << 10 <= both - start <= 128 << 10
    assert end(db, ReadLimits(changes=100, wal=128 << 10)) == end(db, ReadLimits(changes=100))
    db.execute("TRUNCATE t", "INSERT INTO t SELECT i, repeat('x', 50) FROM generate_series(1, 20000) AS i")
    first_end = end(db, ReadLimits(changes=4001))
    large = end(db, ReadLimits(changes=100, wal=128 << 10), start=first_end)
    assert first_end is not None
    assert large is not None
    assert large - first_end > 1 << 20


def test_a_batch_of_nothing(db: Database) -> None:
    db.execute("CREATE TABLE u AS SELECT i, repeat('x', 50) FROM generate_series(1, 20000) AS i")
    for limits in (ReadLimits(), ReadLimits(changes=1), ReadLimits(wal=64 << 10), ReadLimits(1, 1, 64 << 10)):
        assert end(db, limits) is None


@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="there is no limit by default")
def test_the_limits_that_hold() -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    default = read_options({})
    assert limits_of(read_limit(default), default, Pace(30)) == ReadLimits(None, None, 256 << 20)
    given = read_options({"max_wal_per_batch": "1m", "max_bytes_per_batch": "7", "max_changes_per_batch": "8"})
    assert limits_of(read_limit(given), given, Pace(30)) == ReadLimits(8, 7, 1 << 20)
    slow = Pace(30)
    slow.bound = 2 << 20
    assert limits_of(read_limit(default), default, slow) == ReadLimits(None, None, 2 << 20)
    assert limits_of(read_limit(given), given, slow) == ReadLimits(8, 7, 1 << 20)
    # That holds with Trigger.Once alone.
    for options in (default, given):
        assert not isinstance(read_limit(options), ReadAllAvailable)
        assert limits_of(ReadAllAvailable(), options, slow) == ReadLimits()
