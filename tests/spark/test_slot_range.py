"""A part of a slot that several sessions decode is what one session gives, in the same order, whatever breaks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from logicalrep_pipeline.slots import the_slot
from logicalrep_pipeline.spark import feed_schema, slot_range
from logicalrep_pipeline.spark.options import read_options
from logicalrep_pipeline.spark.slot_range import read_slot
from logicalrep_pipeline.spark.typed import table_schema
from tests.server.servers import Database
from tests.spark.workload import prepare, run
from tests.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


@pytest.fixture(autouse=True)
def _little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_range, "_WAL_OF_A_SESSION", 1)


def test_the_rows_are_those_of_one_session(db: Database) -> None:
    prepare(db, "s")
    with db.writer() as other:
        for seed in range(1, 5):
            with other.transaction():
                other.execute("INSERT INTO toasted VALUES (%s, repeat('long', 1000))", (-seed,))
                run(db.connection, seed)
                db.execute(f"ALTER TABLE bare ADD c{seed} int DEFAULT {seed}")
    for options in ({}, {"values": "variant"}, {"relations": "true"}, {"table": "public.plain"}):
        expected = _rows(db, decoding_sessions="1", **options)
        assert len(expected) > 500
        assert _rows(db, decoding_sessions="5", **options) == expected


def test_a_session_that_breaks(db18: Database) -> None:
    prepare(db18, "s")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 1000) FROM generate_series(1, 15000) AS i")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 1000) FROM generate_series(15001, 30000) AS i")
    expected = _rows(db18, decoding_sessions="1")
    for session, after in ((0, 1), (1, 1), (1, 15_000)):
        batches, rows = _read(db18, decoding_sessions="2"), []
        while len(rows) < after:
            rows += next(batches).to_pylist()
        pids = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        db18.execute(f"SELECT pg_terminate_backend(({pids} ORDER BY backend_start LIMIT 1 OFFSET {session}))")
        for batch in batches:
            rows += batch.to_pylist()
        assert rows == expected


def test_what_is_left_early_leaves_no_slot(db18: Database) -> None:
    prepare(db18, "s")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 1000) FROM generate_series(1, 30000) AS i")
    batches = _read(db18, decoding_sessions="3")
    next(batches)
    assert _copies(db18) == 2
    batches.close()
    eventually(lambda: _copies(db18) == 0, seconds=10)


def _read(db: Database, **given: str) -> Any:
    options = read_options({"dsn": db.dsn, "slot": "s", "publication": "p", "rows_per_record_batch": "1000", **given})
    slot = the_slot(db.connection, "s")
    schema = feed_schema(options.values)
    if options.table is not None:
        schema = table_schema(db.connection, options.table, options.publications)
    return read_slot(options, schema, slot.confirmed, slot.reached)


def _rows(db: Database, **given: str) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(_read(db, **given))).to_pylist()


def _copies(db: Database) -> int:
    return len(db.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database() AND temporary"))
