"""The source in a session of Spark Connect, in a program of its own, as a process has only one kind of session."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark import acknowledge, register
from logicalrep.spark.options import OptionError
from logicalrep.spark.source import ConnectDataSource, LogicalRepDataSource
from tests.postgres.servers import Database
from tests.spark.streams import Stream

PROGRAM = """
import json
import sys
import time

import psycopg
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from logicalrep.metrics import listener
from logicalrep.spark import acknowledge, register, snapshot, typed_table
from logicalrep.spark.frames import merged

dsn, folder = sys.argv[1:]
options = {"dsn": dsn, "slot": "connect", "publication": "p"}
spark = register(SparkSession.builder.remote("local[2]").getOrCreate())
assert isinstance(spark, ConnectSession)

with snapshot(**options) as name:
    rows = spark.read.format("logicalrep").options(**options, table="public.t", snapshot=name).load()
    rows.write.parquet(f"{folder}/rows")
typed = typed_table("public.t", **options)


def apply(batch, number):
    rows = batch.transform(typed)
    table = batch.sparkSession.read.parquet(f"{folder}/{number - 1 if number else 'rows'}")
    merged(table, rows, keys=["id"]).select("id", "a").write.mode("overwrite").parquet(f"{folder}/{number}")


def changes(mode, *statements):
    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement)
    read = spark.readStream.format("logicalrep").options(**options, mode=mode).load()
    return read.writeStream.option("checkpointLocation", f"{folder}/checkpoint")


def stream(mode, *statements):
    query = changes(mode, *statements).foreachBatch(apply).trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None
    assert acknowledge(query, **options)


stream("peek", "INSERT INTO public.t VALUES (3, 'three')", "UPDATE public.t SET a = 'deux' WHERE id = 2")
stream("walsender", "DELETE FROM public.t WHERE id = 1", "UPDATE public.t SET a = 'trois' WHERE id = 3")
try:
    spark.read.format("logicalrep").options(**options, password="sesame").load().collect()
except Exception as error:
    assert "[OPTION_INVALID] password among the options" in str(error) and "PGPASSWORD" in str(error), error
else:
    raise AssertionError("a password was taken")
print(json.dumps([list(row) for row in spark.read.parquet(f"{folder}/1").orderBy("id").collect()]))

heard = listener()
spark.streams.addListener(heard)


def wait_for(expected):
    deadline = time.monotonic() + 60
    while [figures.changes for figures in heard.figures() if figures.slot == "connect"] != expected:
        assert time.monotonic() < deadline, heard.figures()
        time.sleep(0.1)


query = changes("auto", "INSERT INTO public.t VALUES (4, 'four')").format("noop").start()
wait_for([1])
assert heard.figures()[0].lag_bytes is not None
query.stop()
wait_for([])
spark.stop()
"""


@pytest.mark.parametrize("secret", [{"password": "sesame"}, {"dsn": "password=sesame"}, {"SSLPASSWORD": "sesame"}])
def test_a_secret_among_the_options_is_refused_in_spark_connect(secret: dict[str, str]) -> None:
    """Its server writes all options to its event log."""
    options = {"slot": "s", "publication": "p", **secret}
    with pytest.raises(OptionError, match=r"password among the options.*PGPASSWORD") as raised:
        ConnectDataSource(options).schema()
    assert "sesame" not in str(raised.value)
    assert LogicalRepDataSource(options).schema() == ConnectDataSource({"slot": "s", "publication": "p"}).schema()


def test_a_stream_in_a_session_of_spark_connect(connect: Any, db18: Database, tmp_path: Path) -> None:
    """The rows of the last run are acknowledged, and the next run resumes after them."""
    db18.execute("CREATE TABLE public.t (id int PRIMARY KEY, a text)", "CREATE PUBLICATION p FOR TABLE public.t")
    create_slot(db18.connection, "spark")
    stream = Stream(register(connect), db18, tmp_path)
    assert type(stream.load()).__module__.startswith("pyspark.sql.connect")
    changes = [
        ("INSERT INTO public.t VALUES (1, 'one'), (2, 'two')", ["insert", "insert"]),
        ("DELETE FROM public.t WHERE id = 1", ["delete"]),
    ]
    read: list[str] = []
    for statement, ops in changes:
        db18.execute(statement)
        query = stream.run()
        read += ops
        rows = stream.frame().orderBy("commit_lsn", "ordinal").collect()
        assert [row.op for row in rows] == read
        assert acknowledge(query, **stream.options) == str(query_slot(db18.connection, "spark").confirmed.lsn)


@pytest.mark.thorough
@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="the extra connect is not installed")
@pytest.mark.usefixtures("spark")
def test_a_session_of_spark_connect(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE public.t (id int PRIMARY KEY, a text)",
        "INSERT INTO public.t VALUES (1, 'one'), (2, 'two')",
        "CREATE PUBLICATION p FOR TABLE public.t",
    )
    # Java is where the shared session found it. With SPARK_TESTING, Spark's server uses any free port.
    environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, db18.dsn, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[2, "deux"], [3, "trois"]]
    assert db18.rows("SELECT id, a FROM public.t ORDER BY id") == [(2, "deux"), (3, "trois"), (4, "four")]
