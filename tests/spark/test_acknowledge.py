"""`acknowledge` advances a slot exactly to the position of the query's source that reads it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark import acknowledge, run_available_now, sessions
from logicalrep.spark.offsets import offset_in_progress, offset_of
from logicalrep.spark.sessions import QueryError
from tests.postgres.servers import Database
from tests.spark.streams import Stream


@pytest.fixture
def db(db18: Database) -> Database:
    """Return a database with two slots, and a publication for each."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    for slot, table in (("a", "t"), ("b", "u")):
        db18.execute(f"CREATE PUBLICATION {slot} FOR TABLE {table}")
        create_slot(db18.connection, slot)
    return db18


def options(db: Database, slot: str) -> dict[str, str]:
    return {"dsn": db.dsn, "slot": slot, "publication": slot}


def ended(*offsets: object) -> Any:
    """Return a finished query whose sources have these offsets."""
    sources = [{"endOffset": None if offset is None else json.dumps(offset)} for offset in offsets]
    return SimpleNamespace(isActive=False, exception=lambda: None, lastProgress={"sources": sources})


def at_head(db: Database, slot: str) -> dict[str, Any]:
    return offset_of(query_slot(db.connection, slot).reached, slot=slot)


def test_each_of_two_slots_moves_to_its_own_source(spark: Any, db: Database, tmp_path: Path) -> None:
    stream = Stream(spark, db, tmp_path)
    both = stream.load(**options(db, "a")).union(stream.load(**options(db, "b")))
    confirmed = query_slot(db.connection, "b").confirmed.lsn
    db.execute("INSERT INTO t VALUES (1)")
    query = stream.writer(both).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    ends = {slot: acknowledge(query, **options(db, slot)) for slot in ("a", "b")}
    for slot, end in ends.items():
        assert str(query_slot(db.connection, slot).confirmed.lsn) == end
    progress: Any = query.lastProgress
    offsets: list[Any] = [offset_in_progress(source["endOffset"]) for source in progress["sources"]]
    assert {offset["slot"]: offset["lsn"] for offset in offsets} == ends
    # Spark 4.0 and 4.1 plan an empty batch too.
    assert confirmed <= Lsn(ends["b"]) <= Lsn(ends["a"])
    assert confirmed < Lsn(ends["a"])


def test_a_query_of_which_no_one_source_reads_the_slot(db: Database) -> None:
    confirmed = query_slot(db.connection, "b").confirmed
    db.execute("INSERT INTO u VALUES (1)")
    without_slot = offset_of(query_slot(db.connection, "b").reached)
    for query in (
        ended(at_head(db, "a")),
        ended(at_head(db, "b"), at_head(db, "b")),
        ended(without_slot),
        ended(7, {"topic": {"0": 1}}),
    ):
        with pytest.raises(
            QueryError,
            match=r"\[QUERY_NOT_OF_SLOT\] \d of the query's sources read replication slot 'b', but exactly one must",
        ):
            acknowledge(query, **options(db, "b"))
    assert query_slot(db.connection, "b").confirmed == confirmed
    assert acknowledge(ended(None), **options(db, "b")) is None
    end = at_head(db, "b")
    assert acknowledge(ended(7, None, end), **options(db, "b")) == end["lsn"]


def test_a_position_that_the_server_s_wal_has_not(db: Database) -> None:
    confirmed = query_slot(db.connection, "a").confirmed
    db.execute("INSERT INTO t VALUES (1)")
    offset = at_head(db, "a")
    beyond = offset_of(WalPosition(Lsn(query_wal_head(db.connection) + (1 << 20)), confirmed.timeline), slot="a")
    other = offset | {"system_identifier": str(int(offset["system_identifier"]) + 1)}
    for wrong, reason in ((beyond, "the server's WAL ends at"), (other, "it is another one")):
        with pytest.raises(LostPositionError, match=reason):
            acknowledge(ended(wrong), **options(db, "a"))
    assert query_slot(db.connection, "a").confirmed == confirmed


@pytest.mark.parametrize("has_admission_control", [True, False])
def test_available_now_runs_until_the_end_of_now(
    db: Database, monkeypatch: pytest.MonkeyPatch, has_admission_control: bool
) -> None:
    """Each run reads one change, as Spark 4.0 and 4.1 may do; a change that is written meanwhile is left to later."""
    positions = []
    for number in range(3):
        db.execute(f"INSERT INTO t VALUES ({number})")
        positions.append(query_slot(db.connection, "a").reached)
    monkeypatch.setattr(sessions, "HAS_ADMISSION_CONTROL", has_admission_control)
    runs: list[Any] = []

    class Writer:
        def trigger(self, *, availableNow: bool) -> Writer:  # noqa: N803
            assert availableNow
            return self

        def start(self) -> Any:
            db.execute("INSERT INTO t SELECT max(id) + 1 FROM t")
            runs.append(ended(offset_of(positions[min(len(runs), 2)], slot="a")))
            runs[-1].awaitTermination = lambda: True
            return runs[-1]

    writer: Any = Writer()
    assert run_available_now(writer, **options(db, "a")) is runs[-1]
    assert len(runs) == (1 if has_admission_control else 3)
    assert query_slot(db.connection, "a").confirmed.lsn == positions[len(runs) - 1].lsn
    if not has_admission_control:
        # A run that comes no further is the last one.
        runs[:] = runs[:2]
        run_available_now(writer, **options(db, "a"))
        assert len(runs) == 4


def test_everything_that_is_there_by_several_runs(spark: Any, db: Database, tmp_path: Path) -> None:
    stream = Stream(spark, db, tmp_path, **options(db, "a"), max_changes_per_batch="2")
    for start in range(5):
        db.execute(f"INSERT INTO t SELECT {start} * 10 + i FROM generate_series(1, 2) AS i")
    query = run_available_now(stream.writer(stream.load()), **stream.options)
    assert not query.isActive
    assert stream.frame().count() == 10
    progress: Any = query.lastProgress
    offset: Any = offset_in_progress(progress["sources"][0]["endOffset"])
    assert str(query_slot(db.connection, "a").confirmed.lsn) == offset["lsn"]
