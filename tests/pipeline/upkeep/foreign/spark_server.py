"""A Spark 4.1 with the runtimes of Iceberg and Delta in a process of its own, which runs SQL for tests.

The process has one Java. Each client gets a session with catalogs of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.conftest import ROOT

_SPARK, _JARS = ROOT / "build/pyspark-4.1", ROOT / "build/jars"
_ARTIFACTS = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    # The catalogs in a file that pyiceberg writes.
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
_PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", sys.argv[1])
builder = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "1")
# A task for each of many small parts takes minutes.
builder = builder.config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")
builder = builder.config("spark.databricks.delta.snapshotPartitions", "1")
builder = builder.config("spark.sql.session.timeZone", "UTC")
builder = builder.config(
    "spark.sql.extensions",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,io.delta.sql.DeltaSparkSessionExtension",
)
builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
session = spark
for line in sys.stdin:
    request = json.loads(line)
    try:
        if "settings" in request:
            session = spark.newSession()
            for name, value in request["settings"].items():
                session.conf.set(name, value)
            answer = {"rows": []}
        else:
            answer = {"rows": [row.asDict() for row in session.sql(request["sql"]).collect()]}
    except Exception as error:
        answer = {"error": str(error)}
    answers.write(json.dumps(answer, default=str) + chr(10))
    answers.flush()
"""


class SparkNotInstalledError(Exception):
    """PySpark 4.1 or a jar cannot be fetched here."""


class SparkError(Exception):
    """The error of a statement, with Java's text."""


class LostRaceError(SparkError):
    """The error of a commit that came second."""


class SparkServer:
    """The process. `start` returns the instance that all tests share."""

    def __init__(self) -> None:
        jars, environment = fetch()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, jars],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(self._stop)

    def begin(self, settings: Mapping[str, str]) -> None:
        """Begin a session with settings of its own, in place of the session before."""
        self._ask({"settings": settings})

    def run(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement, and return its rows. Raises SparkError."""
        return self._ask({"sql": sql})

    def _ask(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "Spark has ended"}')
        if "error" in answer:
            is_lost_race = "CommitFailedException" in answer["error"] or "Concurrent" in answer["error"]
            raise (LostRaceError if is_lost_race else SparkError)(f"{answer['error']}: {request}")
        rows: list[dict[str, Any]] = answer["rows"]
        return rows

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()


@cache
def start() -> SparkServer:
    """Return the Spark of this process; it is started once. Raises SparkNotInstalledError."""
    return SparkServer()


@cache
def fetch() -> tuple[str, dict[str, str]]:
    """Return the paths of the jars for `spark.jars`, and the environment of a process that imports PySpark 4.1.

    Raises SparkNotInstalledError.
    """
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(_SPARK)]
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-DoutputDirectory={_JARS}"]
    jars = {
        _JARS / f"{name}-{version}.jar": artifact for artifact in _ARTIFACTS for _, name, version in [_parts(artifact)]
    }
    wanted = {_SPARK / "pyspark": [*install, "pyspark==4.1.*", "py4j"]}
    wanted |= {jar: [*copy, f"-Dartifact={artifact}"] for jar, artifact in jars.items()}
    for path, command in wanted.items():
        if not path.exists() and (
            shutil.which(command[0]) is None or subprocess.run(command, check=False, capture_output=True).returncode
        ):
            raise SparkNotInstalledError(f"{path.name} cannot be fetched here")
    return ",".join(map(str, jars)), os.environ | {"PYTHONPATH": str(_SPARK), "PYSPARK_PYTHON": sys.executable}


def _parts(artifact: str) -> tuple[str, str, str]:
    group, name, version = artifact.split(":")
    return group, name, version
