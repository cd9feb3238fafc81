"""Several sessions decode a part of a slot with the same rows in the same order as one session, whatever breaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from conformance.rows import run
from logicalrep import Lsn
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark import feed_schema
from logicalrep.spark.options import read_options
from logicalrep.spark.peek import slot_range
from logicalrep.spark.peek.slot_range import read_slot
from tests.postgres.servers import Database
from tests.spark.streams import table_schema
from tests.spark.workload import prepare
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def _little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_range, "WAL_OF_A_SESSION", 1)


def test_the_rows_are_those_of_one_session(db: Database) -> None:
    prepare(db, "s")
    with db.writer() as other:
        for seed in range(1, 5):
            with other.transaction():
                other.execute("INSERT INTO toasted VALUES (%s, repeat('long', 1000))", (-seed,))
                run(db.connection, seed)
                db.execute(f"ALTER TABLE bare ADD c{seed} int DEFAULT {seed}")
    for options in ({}, {"relations": "true"}, {"table": "public.plain"}):
        expected = _rows(db, decoding_sessions="1", **options)
        assert len(expected) > 500
        assert _rows(db, decoding_sessions="5", **options) == expected


@pytest.mark.thorough
def test_a_session_that_breaks(db18: Database) -> None:
    prepare(db18, "s")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 1000) FROM generate_series(1, 15000) AS i")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 1000) FROM generate_series(15001, 30000) AS i")
    expected = _rows(db18, decoding_sessions="1")
    for session, after in ((0, 1), (1, 1), (1, 15_000)):
        batches = _read(db18, decoding_sessions="2")
        rows: list[Any] = []
        while len(rows) < after:
            rows += next(batches).to_pylist()
        pids = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        db18.execute(f"SELECT pg_terminate_backend(({pids} ORDER BY backend_start LIMIT 1 OFFSET {session}))")
        for batch in batches:
            rows += batch.to_pylist()
        assert rows == expected


@pytest.mark.parametrize(
    "options",
    [{"messages": "true", "relations": "true"}, {"messages": "true"}, {"table": "public.t", "new_columns": "null"}],
)
def test_a_connection_that_breaks_after_every_row(
    db18: Database, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    """Rows that share a position come in the same order again, whatever the number of sessions."""
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE leaf PARTITION OF root DEFAULT",
        "CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root)",
    )
    db18.rows("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    with db18.connection.transaction():
        db18.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')", "INSERT INTO root VALUES (1)")
        db18.execute("SELECT pg_logical_emit_message(true, 'within', '')", "UPDATE t SET v = v || 'x'")
        db18.execute("SELECT pg_logical_emit_message(false, 'outside', '')", "ALTER TABLE t ADD w int")
        db18.execute("UPDATE t SET id = -id", "TRUNCATE t, other", "INSERT INTO t VALUES (3)")
    # There must be something for each session.
    db18.execute("SELECT pg_switch_wal()")
    db18.execute("SELECT pg_logical_emit_message(false, 'outside', n::text) FROM generate_series(1, 3) AS n")
    db18.execute("SELECT pg_switch_wal()", "INSERT INTO t VALUES (4)", "DELETE FROM t")
    # Each try reads something new, so no run of failures lasts that long.
    options = options | {"retry_timeout": "0.1"}
    expected = _rows(db18, **options)
    assert len(expected) > 10
    decoded, attempts = slot_range.decoded_range, count(1)

    def breaking(*arguments: Any) -> Iterator[Any]:
        attempt = next(attempts)
        monkeypatch.setattr(slot_range, "sessions_for", lambda *_: 1 if "relations" in options else attempt % 3 + 1)
        for number, row in enumerate(chain.from_iterable(map(_each, decoded(*arguments)))):
            if number == attempt:
                raise psycopg.OperationalError("the connection broke")
            yield row

    monkeypatch.setattr(slot_range, "decoded_range", breaking)
    assert _rows(db18, **options) == expected
    assert next(attempts) == len(expected) + 1


def test_a_slot_that_advances_between_two_reads(db18: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spark.read` meets this if a stream reads the same slot."""
    prepare(db18, "s")
    for number in range(4):
        db18.execute(f"INSERT INTO plain SELECT i FROM generate_series({number * 10 + 1}, {number * 10 + 10}) AS i")
    expected = _rows(db18, decoding_sessions="1")
    decoded = slot_range.decoded_range
    broken: list[bool] = []

    def breaking(*arguments: Any) -> Iterator[Any]:
        for row in chain.from_iterable(map(_each, decoded(*arguments))):
            yield row
            if not broken and row["commit_lsn"][0].as_py() == expected[15]["commit_lsn"]:
                broken.append(True)
                slot = query_slot(db18.connection, "s")
                advance_slot(db18.connection, slot, Lsn(moved_to))
                raise psycopg.OperationalError("the connection broke")

    monkeypatch.setattr(slot_range, "decoded_range", breaking)
    moved_to = expected[15]["commit_lsn"]
    assert _rows(db18, is_stream=False, decoding_sessions="1") == expected
    # Once the slot is past the yielded rows, some of the rows that follow may be gone.
    broken.clear()
    moved_to = expected[25]["commit_lsn"]
    with pytest.raises(LostPositionError, match="acknowledged by another reader"):
        _rows(db18, is_stream=False, decoding_sessions="1")


def test_what_is_left_early_leaves_no_slot(db18: Database) -> None:
    prepare(db18, "s")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 1000) FROM generate_series(1, 30000) AS i")
    batches = _read(db18, decoding_sessions="3")
    next(batches)
    assert _copies(db18) == 2
    batches.close()
    eventually(lambda: _copies(db18) == 0, seconds=10)


def _read(db: Database, *, is_stream: bool = True, **given: str) -> Any:
    options = read_options({"dsn": db.dsn, "slot": "s", "publication": "p", "rows_per_record_batch": "1000", **given})
    slot = query_slot(db.connection, "s")
    schema = feed_schema()
    if options.table is not None:
        schema = table_schema(db.connection, options.table, options.publications)
    return read_slot(options, schema, slot.confirmed if is_stream else None, slot.reached)


def _rows(db: Database, *, is_stream: bool = True, **given: str) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(_read(db, is_stream=is_stream, **given))).to_pylist()


def _copies(db: Database) -> int:
    return len(db.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database() AND temporary"))


def _each(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield record batches of one row each."""
    return (batch.slice(number, 1) for number in range(batch.num_rows))
