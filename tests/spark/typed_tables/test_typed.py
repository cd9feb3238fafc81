"""Typed tables: a table's own columns, with the change feed's columns that Spark and Delta use."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from conformance.rows import run
from logicalrep.arrow.row_form import CHANGE_FIELDS, FEED_SCHEMA
from logicalrep.postgres.preflight.findings import PreflightError
from logicalrep.spark import feed_schema, typed_table
from logicalrep.spark.options import OptionError
from logicalrep.spark.schemas import TYPED_COLUMNS, arrow_schema
from tests.postgres.servers import Database
from tests.spark.failures import fails
from tests.spark.streams import Stream
from tests.spark.workload import prepare


def test_every_kind_of_change(spark: Any, db: Database, tmp_path: Path) -> None:
    prepare(db, "spark")
    stream = Stream(spark, db, tmp_path, table="public.plain")
    assert stream.load().schema.simpleString() == (
        "struct<id:int,v:string,n:decimal(12,3),t:timestamp,b:boolean,_change_type:string,_commit_version:bigint,"
        "_commit_timestamp:timestamp,_ordinal:bigint,_unchanged:array<string>>"
    )
    db.execute(
        "INSERT INTO plain VALUES (1, '', 1.5, '2024-02-29 12:00:00.000001+01', true), (2, NULL, NULL, NULL, false)",
        "INSERT INTO whole VALUES (1)",
        "UPDATE plain SET v = 'x' WHERE id = 1",
        "UPDATE plain SET id = 3 WHERE id = 2",
        "DELETE FROM plain WHERE id = 3",
        "TRUNCATE plain",
    )
    stream.run()
    rows = stream.frame().orderBy("_commit_version", "_ordinal").collect()
    moment = rows[0].t
    assert moment == datetime.datetime(2024, 2, 29, 11, 0, 0, 1)
    assert [tuple(row)[:6] for row in rows] == [
        (1, "", Decimal("1.500"), moment, True, "insert"),
        (2, None, None, None, False, "insert"),
        (1, "x", Decimal("1.500"), moment, True, "update_postimage"),
        (2, None, None, None, None, "update_preimage"),
        (3, None, None, None, False, "update_postimage"),
        (3, None, None, None, None, "delete"),
        (None, None, None, None, None, "truncate"),
    ]
    assert [row._ordinal for row in rows] == [0, 1, 0, 0, 0, 0, 0]
    assert all(row._unchanged == [] for row in rows)


def test_whole_old_rows_and_unchanged_values(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    db18.execute(
        "INSERT INTO whole VALUES (1, 'a', repeat('abcdefghij', 2000))",
        "UPDATE whole SET v = 'b'",
        "INSERT INTO toasted VALUES (1, repeat('0123456789', 2000), 'a')",
        "UPDATE toasted SET small = 'b'",
    )
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "p"}
    frame = spark.read.format("logicalrep").options(**options, table="public.whole").load()
    rows = frame.orderBy("_commit_version", "_change_type").collect()
    assert [(row.v, len(row.big), row._change_type) for row in rows] == [
        ("a", 20000, "insert"),
        ("b", 20000, "update_postimage"),
        ("a", 20000, "update_preimage"),
    ]
    frame = spark.read.format("logicalrep").options(**options, table="public.toasted").load()
    rows = frame.orderBy("_commit_version").collect()
    assert [(row.small, row.big is None, row._unchanged) for row in rows] == [("a", False, []), ("b", True, ["big"])]


def test_the_typed_rows_of_a_workload_are_the_table(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, table="public.plain", rows_per_record_batch="100")
    run(db18.connection, 1)
    stream.run()
    run(db18.connection, 2)
    stream.run()
    table: dict[int, tuple[Any, ...]] = {}
    frame = stream.frame().selectExpr("*", "_change_type IN ('update_postimage') AS second")
    for row in frame.orderBy("_commit_version", "_ordinal", "second").collect():
        if row._change_type in ("delete", "update_preimage"):
            del table[row.id]
        else:
            table[row.id] = (row.v, row.n, row.b)
    rows = db18.rows("SELECT id, v, n, b FROM plain")
    assert table == {row[0]: tuple(row[1:]) for row in rows}


def test_a_new_column_is_an_error_until_the_option_lets_it_appear(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, table="public.toasted")
    db18.execute("INSERT INTO toasted VALUES (1)")
    query_frame = stream.load()
    db18.execute("ALTER TABLE toasted ADD extra int", "INSERT INTO toasted VALUES (2, NULL, NULL, 7)")
    writer = query_frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    with fails("SCHEMA_CHANGED", r"public\.toasted has the column extra \(integer\)"):
        query.awaitTermination(60)
    with fails("SCHEMA_CHANGED", r"has no column extra.*new_columns = null"):
        stream.run()
    stream.run(new_columns="null")
    rows = spark.read.schema("id int, extra int").parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, None), (2, 7)]


def test_a_changed_type_is_an_error(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, table="public.plain")
    db18.execute(
        "INSERT INTO plain VALUES (1)",
        "ALTER TABLE plain ALTER n TYPE text",
        "INSERT INTO plain VALUES (2, NULL, 'two')",
    )
    with fails("SCHEMA_CHANGED", r"public\.plain\.n is numeric\(12,3\).*not string.*text_columns = n"):
        stream.run()
    stream.run(text_columns="n")
    rows = spark.read.schema("id int, n string").parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, None), (2, "two")]


def test_a_dropped_column_is_read_with_a_schema_that_has_it(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, table="public.plain")
    old_frame = stream.load()
    db18.execute(
        "INSERT INTO plain (id, v) VALUES (1, 'x')", "ALTER TABLE plain DROP v", "INSERT INTO plain (id) VALUES (2)"
    )
    with fails("SCHEMA_CHANGED", r"public\.plain has the column v .*if it has been dropped since.*\.schema"):
        stream.run(new_columns="null")
    frame = spark.readStream.format("logicalrep").schema(old_frame.schema).options(**stream.options, new_columns="null")
    query = stream.writer(frame.load()).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    rows = spark.read.schema("id int, v string").parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, "x"), (2, None)]


def test_a_value_that_spark_cannot_hold_is_an_error_or_text(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    db18.execute("INSERT INTO plain VALUES (1, 'x', 1, 'infinity')")
    stream = Stream(spark, db18, tmp_path, table="public.plain")
    with fails("COLUMN_VALUE", r"public\.plain\.t.*: 'infinity' \(type timestamp.*text_columns = t reads"):
        stream.run()
    stream.run(text_columns="t, n")
    rows = spark.read.schema("id int, n string, t string").parquet(str(tmp_path / "out")).collect()
    assert [tuple(row) for row in rows] == [(1, "1.000", "infinity")]
    with fails("OPTION_INVALID", r"option 'text_columns' names s: public\.plain has no such column"):
        stream.run(text_columns="s, t")


def test_types_without_a_binary_reader_are_reported(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    db18.execute("CREATE TABLE priced (id int PRIMARY KEY, price money)", "INSERT INTO priced VALUES (1, 1.5)")
    stream = Stream(spark, db18, tmp_path, table="public.priced", binary="true")
    with fails("COLUMN_VALUE", r"public\.priced\.price.*money.*leave out the option binary"):
        stream.run()
    stream.run(binary="false")
    assert [row.price for row in stream.frame().collect()] == ["$1.50"]


def test_typed_rows_out_of_the_feed(spark: Any, db18: Database) -> None:
    """The rows equal the rows that the option `table` reads."""
    prepare(db18, "spark")
    for seed in range(3):
        run(db18.connection, seed)
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "p"}
    read = spark.read.format("logicalrep").options(**options, messages="true", relations="true")
    feed = read.load().persist()
    for table in ("plain", "whole", "by_index", "bare", "toasted", '"Odd ""Näme"'):
        frame = feed.transform(typed_table(f"public.{table}", **options, messages="true", relations="true"))
        typed = spark.read.format("logicalrep").options(**options, table=f"public.{table}").load()
        assert frame.schema == typed.schema
        order = ["_commit_version", "_ordinal", "_change_type"]
        rows = typed.orderBy(*order).collect()
        assert frame.orderBy(*order).collect() == rows
        assert len(rows) > 2
    feed.unpersist()


def test_typed_rows_out_of_the_feed_under_other_settings(spark: Any, db18: Database) -> None:
    """Spark may be configured to pass strings and timestamps to Python in other Arrow types."""
    prepare(db18, "spark")
    db18.execute(
        "INSERT INTO plain VALUES (1, 'text', 1.5, '2024-02-29 12:00:00.000001+01', true)",
        "INSERT INTO plain VALUES (2)",
    )
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "p"}
    settings = {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.execution.arrow.useLargeVarTypes": "true"}
    old_settings = {name: spark.conf.get(name) for name in settings}
    feed = spark.read.format("logicalrep").options(**options).load()
    typed = feed.transform(typed_table("plain", **options)).selectExpr("id", "v", "n", "unix_micros(t)", "b")
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        rows = typed.collect()
    finally:
        for name, value in old_settings.items():
            spark.conf.set(name, value)
    moment = datetime.datetime(2024, 2, 29, 11, 0, 0, 1, datetime.UTC)
    first = (1, "text", Decimal("1.500"), round(moment.timestamp() * 1_000_000), True)
    assert sorted(map(tuple, rows)) == [first, (2, None, None, None, None)]


def test_columns_that_changed_since_the_feed_was_written(spark: Any, db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int, gone text)",
        "CREATE PUBLICATION p FOR ALL TABLES",
        "SELECT pg_create_logical_replication_slot('spark', 'pgoutput')",
        "INSERT INTO t VALUES (1, 10, 'x')",
        "ALTER TABLE t ADD COLUMN new text",
    )
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "p"}
    feed = spark.read.format("logicalrep").options(**options).load()

    def rows(**more: str) -> list[tuple[Any, ...]]:
        return [tuple(row)[:-4] for row in feed.transform(typed_table("t", **options, **more)).collect()]

    with fails("SCHEMA_CHANGED", r"public\.t has no column new at .* set new_columns = null to read NULL there"):
        rows()
    assert rows(new_columns="null") == [(1, 10, "x", None, "insert")]
    db18.execute("ALTER TABLE t ALTER v TYPE timestamptz USING now()")
    with fails("COLUMN_VALUE", r"public\.t\.v: '10' \(type timestamp with time zone\).*text_columns = v"):
        rows(new_columns="null")
    assert rows(new_columns="null", text_columns="v") == [(1, "10", "x", None, "insert")]
    db18.execute("ALTER TABLE t DROP gone")
    with fails("SCHEMA_CHANGED", r"public\.t has the column gone at .*, which the stream's schema does not have"):
        rows(new_columns="null")


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("t", {"tables": "u, v"}, "leaves out public.t: name it there too"),
        ("t", {"tabels": "t"}, "did you mean 'tables'"),
        ("t", {"new_columns": "none"}, "option 'new_columns' is 'none'; expected one of error, null"),
        ("none", {}, "Table public.none is not published"),
        ("none", {"slot": "other"}, "Replication slot 'other' does not exist"),
    ],
)
def test_tables_that_no_feed_has(db18: Database, table: str, options: dict[str, str], message: str) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    db18.execute("SELECT pg_create_logical_replication_slot('spark', 'pgoutput')")
    with pytest.raises((OptionError, PreflightError), match=re.escape(message)):
        typed_table(table, **({"dsn": db18.dsn, "slot": "spark", "publication": "p"} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "public.plain", "tables": "public.whole"}, "'tables' is for the change feed"),
        ({"table": "public.plain", "messages": "true"}, "'messages' is for the change feed"),
        ({"new_columns": "null"}, "'new_columns' is for a typed table"),
        ({"text_columns": "t"}, "'text_columns' is for a typed table"),
    ],
)
def test_options_of_the_other_kind_are_errors(spark: Any, options: dict[str, str], message: str) -> None:
    with fails("OPTION_INVALID", message):
        spark.readStream.format("logicalrep").options(slot="s", publication="p", **options).load()


def test_the_columns_are_those_of_arrow() -> None:
    assert arrow_schema(feed_schema()) == FEED_SCHEMA
    assert list(arrow_schema(StructType(list(TYPED_COLUMNS)))) == list(CHANGE_FIELDS)


def test_a_table_that_does_not_exist(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    with fails("TABLE_NOT_PUBLISHED", r"Table public\.none is not published"):
        Stream(spark, db18, tmp_path, table="public.none").load()


def test_domains_enums_and_generated_columns(spark: Any, db: Database, tmp_path: Path) -> None:
    prepare(db, "spark")
    db.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN price AS numeric(8,2)",
        "CREATE TABLE kinds (id bigint PRIMARY KEY, m mood, p price, l int[], j jsonb, u uuid, d date, r int4range, "
        "g int GENERATED ALWAYS AS (1) STORED)",
        """INSERT INTO kinds VALUES (1, 'glad', 2.5, '{1,NULL}', '{"a": 1}',
           '00000000-0000-0000-0000-000000000001', '2024-01-02', '[1,3)')""",
    )
    frame = spark.read.format("logicalrep").options(dsn=db.dsn, slot="spark", publication="p", table="kinds").load()
    (row,) = frame.collect()
    assert "g" not in frame.columns
    assert tuple(row)[:8] == (
        1,
        "glad",
        row.p,
        [1, None],
        '{"a": 1}',
        "00000000-0000-0000-0000-000000000001",
        datetime.date(2024, 1, 2),
        "[1,3)",
    )
    assert Decimal(row.p) == Decimal("2.5")
