"""`acknowledge` advances a slot exactly to the position of the query's source that reads it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.postgres.slots import LostPositionError, create_slot, the_slot, wal_head
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark import acknowledge
from logicalrep.spark.offsets import offset_of
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
    return offset_of(the_slot(db.connection, slot).reached, slot=slot)


def test_each_of_two_slots_moves_to_its_own_source(spark: Any, db: Database, tmp_path: Path) -> None:
    stream = Stream(spark, db, tmp_path)
    both = stream.load(**options(db, "a")).union(stream.load(**options(db, "b")))
    before = the_slot(db.connection, "b").confirmed.lsn
    db.execute("INSERT INTO t VALUES (1)")
    query = stream.writer(both).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    ends = {slot: acknowledge(query, **options(db, slot)) for slot in ("a", "b")}
    for slot, end in ends.items():
        assert str(the_slot(db.connection, slot).confirmed.lsn) == end
    found = {json.loads(source["endOffset"])["slot"]: source["endOffset"] for source in query.lastProgress["sources"]}
    assert {slot: json.loads(offset)["lsn"] for slot, offset in found.items()} == ends
    assert before <= the_slot(db.connection, "b").confirmed.lsn < the_slot(db.connection, "a").confirmed.lsn


def test_a_query_of_which_no_one_source_reads_the_slot(db: Database) -> None:
    before = the_slot(db.connection, "b").confirmed
    db.execute("INSERT INTO u VALUES (1)")
    without_slot = offset_of(the_slot(db.connection, "b").reached)
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
    assert the_slot(db.connection, "b").confirmed == before
    assert acknowledge(ended(None), **options(db, "b")) is None
    end = at_head(db, "b")
    assert acknowledge(ended(7, None, end), **options(db, "b")) == end["lsn"]


def test_a_position_that_the_server_s_wal_has_not(db: Database) -> None:
    before = the_slot(db.connection, "a").confirmed
    db.execute("INSERT INTO t VALUES (1)")
    offset = at_head(db, "a")
    beyond = offset_of(WalPosition(Lsn(wal_head(db.connection) + (1 << 20)), before.timeline), slot="a")
    other = offset | {"system_identifier": str(int(offset["system_identifier"]) + 1)}
    for wrong, reason in ((beyond, "the server's WAL ends at"), (other, "it is another one")):
        with pytest.raises(LostPositionError, match=reason):
            acknowledge(ended(wrong), **options(db, "a"))
    assert the_slot(db.connection, "a").confirmed == before
