"""Errors reach the driver whole from a worker: as objects, and as the text that Spark shows."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from logicalrep import LogicalRepError
from logicalrep.postgres.preflight.findings import Finding, PreflightError
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.spark.quiet import sentences
from tests.errors.every_error import every_error
from tests.postgres.servers import Database
from tests.spark.cluster import PATHS


def test_every_error_comes_from_a_worker_as_it_is(spark: SparkSession) -> None:
    errors = list(every_error())
    returned = spark.sparkContext.parallelize(errors, 2).map(lambda error: (str(error), error)).collect()
    assert [(text, str(error), type(error)) for text, error in returned] == [
        (str(error), str(error), type(error)) for error in errors
    ]


def test_the_driver_sees_the_text_with_each_code(spark: SparkSession) -> None:
    def fail(_: object) -> None:
        raise PreflightError([Finding("WAL_LEVEL", "It is low."), Finding("SLOT_LOST", "It is lost.")])

    # Spark 4.0 and 4.1 leave errors of an RDD as Java's.
    with pytest.raises((PythonException, Py4JJavaError)) as raised:
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
    ("slot", "schema", "sentence"),
    [
        ("none", "", "[SLOT_MISSING] Replication slot 'none' does not exist: "),
        pytest.param("s", TYPED, "[SCHEMA_CHANGED] public.t.id is integer", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_program_s_last_line_is_the_sentence(
    db18: Database, tmp_path: Path, slot: str, schema: str, sentence: str
) -> None:
    """The error is one of the driver, and one of a task."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    db18.execute("INSERT INTO t VALUES (1000)")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.lstrip())
    done = subprocess.run(
        [sys.executable, program, tmp_path / "checkpoint", db18.dsn, slot, schema],
        env=os.environ | {"PYTHONPATH": PATHS}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-1].startswith(sentence), done.stderr
    assert sum(line.startswith(sentence) for line in lines) == 1
    # Neither the driver's nor Spark's part of the traceback has the way through our modules.
    assert "retries.py" not in done.stderr
    assert "columnar.py" not in done.stderr
    # The program's own line, the error's name, and the sentence.
    at = len(lines) - lines[::-1].index("Traceback (most recent call last):") - 1
    assert lines[at + 1 : at + 3] == [
        f'  File "{program}", line 12, in <module>',
        "    writer.trigger(availableNow=True).start().awaitTermination()",
    ]
    assert lines[-2] == "pyspark.errors.exceptions.captured.StreamingQueryException: Spark's log has the whole text"
    assert len(lines) - at < 7


NOTEBOOK = """
import sys

import nbformat
from nbclient import NotebookClient

start, folder, dsn = sys.argv[1:]
query = f'''options = {{"dsn": {dsn!r}, "slot": "none", "publication": "p", "retry_timeout": "5"}}
writer = spark.readStream.format("logicalrep").options(**options).load().writeStream.format("noop")
writer.option("checkpointLocation", {folder!r}).start().awaitTermination()'''
cells = [nbformat.v4.new_code_cell(source) for source in (start, query, "1 / 0")]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, kernel_name="python3", timeout=200, allow_errors=True).execute()
for cell in notebook.cells[1:]:
    for output in cell.outputs:
        if output.output_type == "error":
            print(*output.traceback, sep="\\n")
"""
CLASSIC = "from logicalrep.spark import session\nspark = session()"
CONNECT = """from pyspark.sql import SparkSession
from logicalrep.spark import register
spark = register(SparkSession.builder.remote("local[2]").getOrCreate())"""
OF_CONNECT = pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="the extra pipelines is not installed")


@pytest.mark.thorough
@pytest.mark.parametrize("start", [CLASSIC, pytest.param(CONNECT, marks=OF_CONNECT)], ids=["classic", "connect"])
@pytest.mark.usefixtures("spark")
def test_a_notebook_s_cell_ends_with_the_sentence(db18: Database, tmp_path: Path, start: str) -> None:
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    # With SPARK_TESTING, the server of Spark Connect uses any free port.
    environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, start, tmp_path, db18.dsn],
        env=environment | {"PYTHONPATH": PATHS}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    of_query, _, of_others = done.stdout.partition("ZeroDivisionError")
    first, *lines = of_query.splitlines()
    assert first == "Traceback (most recent call last):"
    assert ".start().awaitTermination()" in done.stdout
    assert "Spark's log has the whole text" in done.stdout
    assert any(line.startswith("[SLOT_MISSING] Replication slot 'none' does not exist: ") for line in lines)
    assert len(lines) < 12, done.stdout
    assert "division by zero" in of_others
