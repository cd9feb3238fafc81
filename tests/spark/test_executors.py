"""Executors whose Python lacks logicalrep: the check at the start and each task report it in one sentence."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle

from logicalrep import Oid
from logicalrep.spark import executors, feed_schema
from logicalrep.spark.executors import check_executors
from logicalrep.spark.source import LogicalRepDataSource
from logicalrep.spark.typed_tables.typed_feed import FeedTable
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol.v1 import ReplicaIdentity
from tests.conftest import ROOT
from tests.spark.pythons import make_python
from tests.waiting import eventually

CAPTURE = ROOT / "tests" / "captures" / "pg18" / "mixed" / "v4-late.sql.jsonl.gz"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with all packages of this one except logicalrep."""
    return make_python(tmp_path_factory.mktemp("bare"))


LOADING = """
import pickle, sys
for data in pickle.load(sys.stdin.buffer):
    try:
        pickle.loads(data)
    except RuntimeError as error:
        print(error)
"""


def test_a_worker_without_the_package_reports_what_is_missing(bare_python: Path) -> None:
    slot = {"slot": "s", "publication": "p"}
    path = LogicalRepDataSource({"path": str(CAPTURE)})
    peek, walsender = LogicalRepDataSource(slot), LogicalRepDataSource(slot | {"mode": "walsender"})
    described = TableDescription(
        relation_id=Oid(1),
        schema="public",
        name="t",
        replica_identity=ReplicaIdentity.DEFAULT,
        columns=(),
        types=(),
    )
    table = FeedTable(described, (), allows_missing=False)
    sent = [
        path,
        path.reader(feed_schema()),
        peek.streamReader(feed_schema()),
        walsender.streamReader(feed_schema()),
        lambda: table,
    ]
    data = [cloudpickle.dumps(function) for function in sent]  # type: ignore[no-untyped-call]
    for function in map(cloudpickle.loads, data):
        assert function is not None
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [bare_python, "-c", LOADING],
        input=cloudpickle.dumps(data),  # type: ignore[no-untyped-call]
        env=environment,
        capture_output=True,
        check=True,
    )
    sentences = done.stdout.decode().splitlines()
    assert len(sentences) == len(sent), done.stderr
    for sentence in sentences:
        assert sentence.startswith(f"[PACKAGE_MISSING] the Python worker {bare_python} on ")
        assert "(No module named 'logicalrep'): install logicalrep with its extra 'spark'" in sentence


CLUSTER = """
import json, sys
from pyspark.sql import SparkSession
from logicalrep.spark import executors, session
from logicalrep.spark.source import LogicalRepDataSource

executors.LONGEST_WAIT = 600
said = []
try:
    session("local-cluster[1,1,1024]", **{"spark.executorEnv.PYTHONPATH": "", "spark.task.maxFailures": "1"})
except Exception as error:
    said.append(str(error))
spark = SparkSession.getActiveSession()
spark.dataSource.register(LogicalRepDataSource)
try:
    spark.read.format("logicalrep").load(sys.argv[1]).collect()
except Exception as error:
    said.append(str(error))
spark.stop()
print(json.dumps(said))
"""


@pytest.mark.thorough
@pytest.mark.usefixtures("spark")
def test_a_cluster_whose_executors_have_no_logicalrep(bare_python: Path) -> None:
    """The driver has the package through PYTHONPATH."""
    # Java is where the shared session found it.
    paths = os.pathsep.join(str(ROOT / name) for name in ("generated", "src"))
    environment = os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": str(bare_python)}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(CAPTURE)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    at_the_start, of_the_task = json.loads(done.stdout.splitlines()[-1])
    assert at_the_start.startswith(f"[PACKAGE_MISSING] the Python worker {bare_python} on ")
    assert " has no logicalrep, logicalrep_protocol, logicalrep_runtime: install " in at_the_start
    assert of_the_task.splitlines()[-1].startswith(
        f"RuntimeError: [PACKAGE_MISSING] the Python worker {bare_python} on "
    )


def test_executors_that_are_busy_are_not_waited_for(
    spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(executors, "workers_run_this_python", lambda _: False)
    check_executors(spark)
    context = spark.sparkContext

    def keep_busy() -> None:
        context.addJobTag("busy")
        with pytest.raises(Py4JJavaError, match=r"(?i)cancel"):
            context.parallelize(range(2), 2).foreach(lambda _: time.sleep(600))

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        eventually(lambda: context.statusTracker().getActiveStageIds())
        monkeypatch.setattr(executors, "LONGEST_WAIT", 0.5)
        with caplog.at_level(logging.WARNING, "logicalrep"):
            check_executors(spark)
    finally:
        context.cancelJobsWithTag("busy")
        thread.join()
    assert "no executor answered" in caplog.text
