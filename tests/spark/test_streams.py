"""The streaming source on real servers delivers exactly the committed changes, once, in both modes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.rows import run
from logicalrep import Lsn
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark import acknowledge
from logicalrep.spark.offsets import position_of
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from tests.postgres.servers import Database
from tests.spark.failures import fails
from tests.spark.streams import EACH_MODE, Stream
from tests.spark.workload import feed_rows, prepare, truth
from tests.waiting import eventually


def confirmed(db: Database, slot: str = "spark") -> Lsn:
    lsn = query_slot(db.connection, slot).confirmed_flush_lsn
    assert lsn is not None
    return lsn


@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_running_query_follows_and_the_slot_follows_it(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark", "twin")
    stream = Stream(spark, db18, tmp_path, mode=mode, idle_advance_bytes="1")
    query = stream.start()
    try:
        for seed in (1, 2, 3):
            run(db18.connection, seed, 10)
            head = query_wal_head(db18.connection)
            # The slot follows after the last batch, and while nothing else is written.
            eventually(lambda head=head: confirmed(db18) >= head or not HAS_ADMISSION_CONTROL, query)  # type: ignore[misc]
        eventually(lambda: len(truth(db18, "twin")) == stream.frame().count(), query)
        db18.execute(
            "CREATE TABLE unrelated (a int)", "ALTER PUBLICATION p RENAME TO q", "ALTER PUBLICATION q RENAME TO p"
        )
        head = query_wal_head(db18.connection)
        eventually(lambda: confirmed(db18) >= head or not HAS_ADMISSION_CONTROL, query)
    finally:
        query.stop()
    assert feed_rows(stream.frame()) == truth(db18, "twin")


@pytest.mark.parametrize("mode", EACH_MODE)
def test_batches_keep_within_the_limit(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark", "twin")
    for start in range(0, 100, 5):
        db18.execute(f"INSERT INTO plain SELECT i, 'x' FROM generate_series({start}, {start + 4}) AS i")
    db18.execute("INSERT INTO plain SELECT i, 'x' FROM generate_series(1000, 1049) AS i")
    stream = Stream(spark, db18, tmp_path, mode=mode, max_changes_per_batch="12")
    query = stream.run()
    for _ in range(30):
        if HAS_ADMISSION_CONTROL or stream.frame().count() == 150:
            break
        stream.run()
    if HAS_ADMISSION_CONTROL:
        sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
        assert sum(sizes) == 150
        assert [size for size in sizes if size > 12] == [50], sizes
    assert feed_rows(stream.frame()) == truth(db18, "twin")


@pytest.mark.parametrize("mode", EACH_MODE)
def test_a_position_that_is_lost_is_an_error(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, mode=mode)
    db18.execute("INSERT INTO plain VALUES (1)")
    stream.run()
    db18.execute("INSERT INTO plain VALUES (2)")
    eventually(lambda: query_slot(db18.connection, "spark").active_pid is None)
    advance_slot(db18.connection, query_slot(db18.connection, "spark"), query_wal_head(db18.connection))
    db18.execute("INSERT INTO plain VALUES (3)")
    with fails("POSITION_PASSED", "acknowledged by another reader"):
        stream.run()
    assert stream.frame().count() == 1


@pytest.mark.parametrize("mode", ["peek", pytest.param("walsender", marks=pytest.mark.thorough)])
def test_a_slot_that_was_dropped_is_an_error(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18)
    stream = Stream(spark, db18, tmp_path, mode=mode, create_slot="true")
    stream.run()
    db18.execute("INSERT INTO plain VALUES (1)")
    stream.run()
    assert stream.frame().count() == 1
    eventually(lambda: query_slot(db18.connection, "spark").active_pid is None)
    db18.execute("SELECT pg_drop_replication_slot('spark')", "INSERT INTO plain VALUES (2)")
    with fails("SLOT_MISSING", "'spark' does not exist"):
        stream.run()


def test_the_publication_is_dropped(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path)
    db18.execute("INSERT INTO plain VALUES (1)", "DROP PUBLICATION p")
    with fails("PUBLICATION_MISSING", "Publication 'p' does not exist"):
        stream.run()


def test_a_second_query_on_a_slot_is_refused(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark", "twin")
    first = Stream(spark, db18, tmp_path / "first")
    second = Stream(spark, db18, tmp_path / "second", retry_timeout="0.5")
    query = first.start()
    try:
        db18.execute("INSERT INTO plain VALUES (0)")
        eventually(lambda: first.frame().count() == 1, query)
        with fails("SLOT_IN_USE", r"replication slot 'spark' is in use by process \d+"):
            second.run()
        db18.execute("INSERT INTO plain VALUES (1)")
        eventually(lambda: first.frame().count() == 2, query)
    finally:
        query.stop()
    assert feed_rows(first.frame()) == truth(db18, "twin")


@pytest.mark.parametrize("mode", EACH_MODE)
def test_the_server_restarts_in_the_middle(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark", "twin")
    stream = Stream(spark, db18, tmp_path, mode=mode)
    query = stream.start()
    try:
        for seed in (1, 2, 3):
            run(db18.connection, seed, 10)
            db18.server.stop("immediate")
            db18.server.start()
            db18.reconnect()
        run(db18.connection, 4, 10)
        expected = truth(db18, "twin")
        eventually(lambda: stream.frame().count() == len(expected), query)
    finally:
        query.stop()
    assert feed_rows(stream.frame()) == expected


def test_two_phase_transactions_are_delivered_at_their_commit(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "twin")
    stream = Stream(spark, db18, tmp_path, mode="walsender", two_phase="true", create_slot="true")
    stream.run()
    db18.execute("BEGIN", "INSERT INTO plain VALUES (1)", "PREPARE TRANSACTION 'held'")
    db18.execute("INSERT INTO plain VALUES (2)")
    stream.run()
    assert [row["after"]["id"] for row in feed_rows(stream.frame())] == ["2"]
    db18.execute("COMMIT PREPARED 'held'")
    stream.run()
    rows = stream.frame().orderBy("commit_lsn", "ordinal").collect()
    assert [(row.after["id"], row.gid) for row in rows] == [("2", None), ("1", "held")]


@pytest.mark.parametrize(
    ("mode", "relations"),
    [pytest.param("peek", "false", marks=pytest.mark.thorough), ("peek", "true"), ("walsender", "false")],
)
def test_messages_outside_of_transactions(
    spark: Any, db18: Database, tmp_path: Path, mode: str, relations: str
) -> None:
    """A batch ends at the end of its last message."""
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, mode=mode, relations=relations, messages="true")
    for content in ("0", "1"):
        db18.execute(f"SELECT pg_logical_emit_message(false, 'alone', '{content}', true)")
        stream.run()
    db18.execute("INSERT INTO bare VALUES ('x')")
    stream.run()
    rows = stream.frame().collect()
    assert sorted(row.after["content"] for row in rows if row.op == "message") == ["0", "1"]
    assert [row.op for row in rows if row.op not in ("message", "relation")] == ["insert"]


@pytest.mark.thorough
@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="a run is one batch")
@pytest.mark.parametrize("mode", EACH_MODE)
def test_messages_outside_of_transactions_keep_within_the_limit(
    spark: Any, db18: Database, tmp_path: Path, mode: str
) -> None:
    prepare(db18, "spark")
    expected = []
    for number in range(30):
        if number in (7, 8, 15):
            db18.execute(f"INSERT INTO bare SELECT '{number}' FROM generate_series(1, {number})")
            expected += [("insert", str(number))] * number
        else:
            db18.execute(f"SELECT pg_logical_emit_message(false, 'alone', '{number}', true)")
            expected.append(("message", str(number)))
    stream = Stream(spark, db18, tmp_path, mode=mode, messages="true", max_changes_per_batch="4")
    query = stream.run()
    sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert [size for size in sizes if size > 4] == [7, 8, 15], sizes
    changes = [(row.op, row.after["content" if row.op == "message" else "v"]) for row in stream.frame().collect()]
    assert sorted(changes) == sorted(expected)


def test_logical_messages_and_relations(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    db18.execute(
        "SELECT pg_logical_emit_message(false, 'alone', 'text')",
        "BEGIN",
        "INSERT INTO bare VALUES ('x')",
        "SELECT pg_logical_emit_message(true, 'within', '\\xff00'::bytea)",
        "COMMIT",
        "ALTER TABLE bare ADD n int",
        "INSERT INTO bare VALUES ('y', 1)",
    )
    stream = Stream(spark, db18, tmp_path, messages="true", relations="true")
    stream.run()
    rows = stream.frame().collect()
    messages = [row for row in rows if row.op == "message"]
    assert [row.after for row in messages] == [
        {"prefix": "alone", "content": "text"},
        {"prefix": "within", "content_base64": "/wA="},
    ]
    assert [row.commit_lsn is None for row in messages] == [True, False]
    described = [(row.before, row.after) for row in rows if row.op == "relation"]
    assert described == [(None, {"v": "text"}), ({"v": "text"}, {"v": "text", "n": "integer"})]


def test_spark_makes_variants_of_the_rows(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    db18.execute(
        """INSERT INTO "Odd ""Näme" VALUES (1, repeat('ä', 100))""",
        """UPDATE "Odd ""Näme" SET "Cölumn" = 2, "select" = NULL""",
        "CREATE TABLE wide (" + ", ".join(f"column_{at} int" for at in range(400)) + ")",
        "INSERT INTO wide (column_7) VALUES (7)",
    )
    feed = spark.read.format("logicalrep").options(dsn=db18.dsn, slot="spark", publication="p").load()
    frame = feed.selectExpr("to_variant_object(before) AS before", "to_variant_object(after) AS after")
    first, second, third = frame.selectExpr(
        "variant_get(after, '$.Cölumn', 'int')",
        "variant_get(after, '$.select', 'string')",
        "variant_get(after, '$.column_7', 'int')",
        "to_json(before)",
    ).collect()
    assert tuple(first) == (1, "ä" * 100, None, None)
    assert tuple(second) == (2, None, None, '{"Cölumn":"1"}')
    assert third[2] == 7


def test_a_look_into_the_slot_of_a_walsender(spark: Any, db18: Database) -> None:
    prepare(db18, "spark")
    db18.execute("INSERT INTO bare VALUES ('here')")
    position = confirmed(db18)
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "p", "mode": "walsender", "streaming": "parallel"}
    rows = spark.read.format("logicalrep").options(**options).load().collect()
    assert [row.after for row in rows] == [{"v": "here"}]
    assert confirmed(db18) == position


def test_every_unmet_requirement_of_a_typed_table_is_reported_together(spark: Any, db18: Database) -> None:
    options = {"dsn": db18.dsn, "slot": "none", "publication": "none", "table": "public.none"}
    with fails("SLOT_MISSING", "Replication slot 'none' does not exist") as raised:
        spark.readStream.format("logicalrep").options(**options).load()
    assert "[PUBLICATION_MISSING] Publication 'none' does not exist" in str(raised.value)


def test_the_last_acknowledgement(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path)
    run(db18.connection, 1, 5)
    query = stream.run()
    assert acknowledge(query, **stream.options) == str(confirmed(db18))
    db18.execute("INSERT INTO plain VALUES (12345678)")
    count = stream.frame().count()
    stream.run()
    assert stream.frame().count() == count + 1


def test_ten_thousand_changes_in_one_transaction_and_a_batch_of_segments(
    spark: Any, db18: Database, tmp_path: Path
) -> None:
    prepare(db18, "spark", "twin")
    db18.execute("INSERT INTO plain SELECT i, repeat('x', 100) FROM generate_series(1, 10000) AS i")
    stream = Stream(spark, db18, tmp_path, mode="walsender", segment_bytes="100k", memory_limit="100k")
    stream.run()
    assert feed_rows(stream.frame()) == truth(db18, "twin")


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"protocol_version": "1"}, marks=pytest.mark.thorough),
        pytest.param({"memory_limit": "10k"}, marks=pytest.mark.thorough),
        {"two_phase": "true"},
    ],
)
def test_transactions_of_all_kinds_at_the_same_time(
    spark: Any, db18: Database, tmp_path: Path, options: dict[str, str]
) -> None:
    """Some connections have streamed, rolled back and prepared transactions, another one has many small ones."""
    prepare(db18, "twin")
    create_slot(db18.connection, "spark", two_phase="two_phase" in options)
    stream = Stream(spark, db18, tmp_path, mode="walsender", rows_per_record_batch="300", **options)
    large = "INSERT INTO plain SELECT i, repeat('x', 100) FROM generate_series(%s::int, %s) AS i"
    with db18.writer() as first, db18.writer() as second:
        first.execute("BEGIN")
        second.execute("BEGIN")
        for part in range(6):
            first.execute(large, (10_000 + part * 1000, 10_999 + part * 1000))
            second.execute("SAVEPOINT a")
            second.execute(large, (20_000 + part * 1000, 20_999 + part * 1000))
            second.execute("ROLLBACK TO a" if part % 2 else "RELEASE a")
            for number in range(40):
                db18.execute(
                    f"INSERT INTO plain VALUES ({part * 100 + number})", "UPDATE plain SET v = 'y' WHERE id = 1"
                )
            if part == 2:
                first.execute("ALTER TABLE bare ADD n int")
                first.execute("INSERT INTO bare SELECT 'a', i FROM generate_series(1, 500) AS i")
            if part == 4:
                first.execute("COMMIT")
                db18.execute("INSERT INTO bare SELECT 'b', i FROM generate_series(1, 100) AS i")
                first.execute("BEGIN")
        second.execute("PREPARE TRANSACTION 'second'")
        first.execute("COMMIT")
        db18.execute("INSERT INTO plain SELECT i FROM generate_series(30000, 30100) AS i", "COMMIT PREPARED 'second'")
    stream.run()
    expected = truth(db18, "twin")
    assert len(expected) > 10_000
    assert feed_rows(stream.frame()) == expected
    prepared = stream.frame().where("gid = 'second'").count()
    assert prepared == (3000 if "two_phase" in options else 0)


@pytest.mark.parametrize(
    ("mode", "limits"),
    [
        pytest.param("peek", {}, marks=pytest.mark.thorough),
        ("peek", {"max_changes_per_batch": "1"}),
        ("walsender", {}),
        pytest.param("walsender", {"max_changes_per_batch": "1"}, marks=pytest.mark.thorough),
    ],
)
def test_stream_aborts_without_streaming(
    spark: Any, db18: Database, tmp_path: Path, mode: str, limits: dict[str, str]
) -> None:
    """The server sends them for savepoints that it knows to be rolled back when it runs out of memory for decoding."""
    prepare(db18, "spark", "twin")
    db18.execute(f"ALTER DATABASE {db18.name} SET logical_decoding_work_mem = '64kB'")
    db18.reconnect()
    with db18.writer() as other:
        for number in range(4):
            db18.execute(
                "BEGIN",
                "INSERT INTO plain SELECT i, repeat('x', 50) FROM generate_series(1001, 1250) AS i",
                "SAVEPOINT a",
                "INSERT INTO plain VALUES (0)",
            )
            other.execute("BEGIN")
            other.execute(f"INSERT INTO whole SELECT i, '{number}' FROM generate_series(1, 250) AS i")
            db18.execute("ROLLBACK TO a", "ROLLBACK")
            if number in (1, 3):
                db18.execute(f"INSERT INTO bare VALUES ('{number}')")
            other.execute("ROLLBACK" if number == 2 else "COMMIT")
    options = PluginOptions(publication_names=("p",), proto_version=1)
    aborts = [data for _, data in peek(db18.connection, "twin", options) if data[:1] == b"A"]
    if not aborts:
        pytest.skip("this server sends none")
    stream = Stream(spark, db18, tmp_path, mode=mode, protocol_version="1", **limits)
    for _ in range(1 if HAS_ADMISSION_CONTROL else 8):
        stream.run()
    rows = feed_rows(stream.frame())
    assert len(rows) == 752
    assert rows == truth(db18, "twin")


def test_a_password_is_in_no_plan_and_no_error(spark: Any, db18: Database, tmp_path: Path, capfd: Any) -> None:
    prepare(db18, "spark")
    db18.execute("INSERT INTO plain VALUES (1)")
    secret = "geheim-4711"
    stream = Stream(spark, db18, tmp_path, password=secret)
    stream.run()
    stream.load().explain(True)
    in_dsn = Stream(spark, db18, tmp_path, dsn=f"{db18.dsn} password={secret}")
    in_dsn.load().explain(True)
    with fails("OPTION_INVALID", "is a URI with a password") as caught:
        Stream(spark, db18, tmp_path, dsn=f"postgresql://someone:{secret}@/postgres").load()
    assert secret not in str(caught.value)
    with fails("SLOT_MISSING", "does not exist") as caught:
        Stream(spark, db18, tmp_path / "other", password=secret, slot="none").run()
    assert secret not in str(caught.value)
    out, error = capfd.readouterr()
    assert secret not in out
    assert secret not in error


def test_options_are_checked(spark: Any, db18: Database, tmp_path: Path) -> None:
    for options, reason in (
        ({"publicaton": "p"}, "did you mean 'publication'"),
        ({"mode": "push"}, "expected one of auto, peek, walsender"),
        ({"max_changes_per_batch": "0"}, "expected a number from 1"),
        ({"poll_interval": "soon"}, "expected a number of seconds"),
        ({"max_wal_per_batch": "1k"}, "expected a number from 65536"),
        ({"tables": "a, Shop.Orders"}, 'write "Shop"."Orders"'),
        ({"table": "a, b"}, "expected one table"),
    ):
        with fails("OPTION_INVALID", reason):
            Stream(spark, db18, tmp_path, **options).load()


@pytest.mark.thorough
def test_an_idle_query_does_next_to_nothing(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18)
    create_slot(db18.connection, "spark")
    stream = Stream(spark, db18, tmp_path, poll_interval="0.5")
    query = stream.start()
    try:
        eventually(lambda: query.lastProgress is not None or query.status["message"].startswith("Waiting"), query)
        db18.execute("INSERT INTO plain VALUES (1)")
        eventually(lambda: stream.frame().count() == 1, query)
        # Sessions tell what they did a second later.
        time.sleep(2)
        old_count = db18.value("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        time.sleep(4)
        new_count = db18.value("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        assert isinstance(old_count, int)
        assert isinstance(new_count, int)
        assert new_count - old_count < 40
        assert query.lastProgress["batchId"] <= 2
    finally:
        query.stop()


@pytest.mark.parametrize("mode", EACH_MODE)
@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 do not say that the last batch is committed")
def test_the_last_batch_of_a_run_is_acknowledged(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, mode=mode)
    for number in range(3):
        db18.execute(f"INSERT INTO plain VALUES ({number})")
        end = position_of(json.loads(stream.run().lastProgress["sources"][0]["endOffset"])).lsn
        eventually(lambda end=end: confirmed(db18) == end, seconds=5)  # type: ignore[misc]
