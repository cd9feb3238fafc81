"""Errors reach the driver whole from a worker: as objects, and as the text that Spark shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from logicalrep import LogicalRepError
from logicalrep.postgres.preflight.findings import Finding, PreflightError
from logicalrep.postgres.slots import create_slot
from logicalrep.spark.quiet import sentences
from tests.conftest import ROOT
from tests.errors.every_error import every_error
from tests.postgres.servers import Database


def test_every_error_comes_from_a_worker_as_it_is(spark: SparkSession) -> None:
    errors = list(every_error())
    found = spark.sparkContext.parallelize(errors, 2).map(lambda error: (str(error), error)).collect()
    assert [(text, str(error), type(error)) for text, error in found] == [
        (str(error), str(error), type(error)) for error in errors
    ]


def test_the_driver_sees_the_text_with_each_code(spark: SparkSession) -> None:
    def fail(_: object) -> None:
        raise PreflightError([Finding("WAL_LEVEL", "It is low."), Finding("SLOT_LOST", "It is lost.")])

    with pytest.raises(PythonException) as raised:
        spark.range(1).rdd.foreach(fail)
    assert "PreflightError: [WAL_LEVEL] It is low.\n[SLOT_LOST] It is lost." in str(raised.value)
    assert sentences(raised.value) == ["[WAL_LEVEL] It is low.", "[SLOT_LOST] It is lost."]
    assert not isinstance(raised.value, LogicalRepError)


PROGRAM = """
import sys
from logicalrep.spark import session

folder, dsn, slot, schema = sys.argv[1:]
options = {"dsn": dsn, "slot": slot, "publication": "p", "retry_timeout": "5"}
spark = session()
reader = spark.readStream.format("logicalrep").options(**options)
if schema:
    reader = reader.option("table", "public.t").schema(schema)
writer = reader.load().writeStream.format("noop").option("checkpointLocation", folder)
writer.trigger(availableNow=True).start().awaitTermination()
"""
TYPED = (
    "id tinyint, _change_type string NOT NULL, _commit_version bigint NOT NULL, _commit_timestamp timestamp NOT NULL, "
    "_ordinal bigint NOT NULL, _unchanged array<string> NOT NULL"
)


@pytest.mark.parametrize(
    ("slot", "schema", "said"),
    [
        ("none", "", "[SLOT_MISSING] Replication slot 'none' does not exist: "),
        pytest.param("s", TYPED, "[SCHEMA_CHANGED] public.t.id is integer", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_program_s_last_line_is_the_sentence(
    db18: Database, tmp_path: Path, slot: str, schema: str, said: str
) -> None:
    """The error is one of the driver, and one of a task."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    db18.execute("INSERT INTO t VALUES (1000)")
    paths = os.pathsep.join(str(ROOT / name) for name in ("generated", "src"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path, db18.dsn, slot, schema],
        env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-1].startswith(said), done.stderr
    assert sum(line.startswith(said) for line in lines) == 1
    # Neither the driver's nor Spark's part of the traceback has the way through our modules.
    assert "retries.py" not in done.stderr
    assert "columnar.py" not in done.stderr
    assert "Traceback" in done.stderr
