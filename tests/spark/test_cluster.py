"""A stream on a cluster: executors that share nothing with the driver, and tasks that run again or twice."""

from __future__ import annotations

import json
import os
import pwd
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from tests.pipeline.engines import losing
from tests.postgres.servers import Database
from tests.spark.cluster import OF_DRIVER, PATHS, cluster

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

SMALL, LARGE = 5, 100_000
"""The rows of small transactions, and the rows of a transaction that is too large for tasks."""
PROGRAM = """
import json
import os
import sys
import tempfile

import psycopg

from logicalrep.spark import session

master, dsn, mode, folder, settings, *writes = sys.argv[1:]
spark = session(master, **json.loads(settings))
there = spark.sparkContext.parallelize(range(2), 2).map(lambda _: (os.geteuid(), tempfile.gettempdir())).collect()
options = {"dsn": dsn, "slot": "s", "publication": "p", "mode": mode}
frame = spark.readStream.format("logicalrep").options(**options).load()
found = []


def sink(batch, number):
    found.append([tuple(row) for row in batch.selectExpr("after['id']", "length(after['v'])").collect()])


query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", folder).start()
with psycopg.connect(dsn, autocommit=True) as connection:
    for write in writes:
        before = len(found)
        rows = connection.execute(write).rowcount
        while sum(map(len, found[before:])) < rows:
            assert not query.awaitTermination(0.1)
query.stop()
rows = sorted((int(key), length) for batch in found for key, length in batch)
print(json.dumps({"there": sorted(set(there)), "rows": rows}))
"""


def python_of(user: dict[str, Any]) -> tuple[str, str]:
    """Return a Python that a user can run, and the PYTHONPATH with which it has our packages; skip without one."""
    packages = os.pathsep.join(site.getsitepackages())
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            path = os.pathsep.join((PATHS, packages))
            subprocess.run(
                [python, "-c", "import logicalrep.spark"], env={"PYTHONPATH": path}, cwd="/", check=True, **user
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return python, path
    pytest.skip(f"another user can run no Python {version}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start executors as another user")
@pytest.mark.parametrize("mode", ["auto", "walsender"])
def test_executors_that_share_no_folder_with_the_driver(db18: Database, tmp_path: Path, mode: str) -> None:
    db18.execute("CREATE TABLE public.t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR TABLE public.t")
    create_slot(db18.connection, "s")
    other = pwd.getpwnam("nobody")
    user = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    python, path = python_of(user)
    of_driver = tmp_path / "driver"
    of_driver.mkdir()
    insert = "INSERT INTO public.t SELECT i, repeat(md5(i::text), {}) FROM generate_series({}, {}) AS i"
    writes = [
        *(insert.format(1, number, number) for number in range(SMALL)),
        insert.format(32, SMALL, SMALL + LARGE - 1),
        insert.format(1, -1, -1),
    ]
    settings = {"spark.executorEnv.PYTHONPATH": path, "spark.executor.memory": "512m", "spark.driver.memory": "512m"}
    with cluster(tmp_path, 1, python, **user) as master:
        done = subprocess.run(
            [python, "-c", PROGRAM, master, db18.dsn, mode, tmp_path / "checkpoint", json.dumps(settings), *writes],
            env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": python, "TMPDIR": str(of_driver), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["rows"] == [[-1, 32], *([i, 32 if i < SMALL else 1024] for i in range(SMALL + LARGE))]
    assert {uid for uid, _ in report["there"]} == {other.pw_uid}
    assert str(of_driver) not in {folder for _, folder in report["there"]}
    log_lines = [line.partition("slot s: ")[2] for line in done.stderr.splitlines() if "slot s: read by " in line]
    assert [line.partition(", ")[0] for line in log_lines] == ["read by walsender", "read by peek", "read by walsender"]
    assert "too large to be sent to the executors" in log_lines[1]
    assert not list(of_driver.glob("logicalrep-[0-9]*"))
    assert query_slot(db18.connection, "s").active_pid is None


REPEATED = """
import json
import sys
import uuid
from pathlib import Path

import psycopg

from logicalrep.spark import session
from tests.pipeline.engines import losing

master, dsn, mode, folder, marks, way, settings = sys.argv[1:]
spark = session(master, **json.loads(settings))
assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
options = {"dsn": dsn, "slot": "s", "publication": "p", "mode": mode}
frame = spark.readStream.format("logicalrep").options(**options).load()
found = []


def read(batches):
    from pyspark import TaskContext
    Path(marks, f"partition-{TaskContext.get().partitionId()}-{uuid.uuid4()}").touch()
    if way == "speculation":
        losing.lose_first("read")
    yield from batches


def shuffled(batches):
    losing.lose_first("shuffled")
    yield from batches


def sink(batch, number):
    for mark in Path(marks).glob("partition-*"):
        mark.unlink()
    rows = batch.selectExpr("after['id'] AS id").mapInArrow(read, "id string")
    if way == "executor":
        # The rows' files go with the executor, so that the stage before is repeated.
        rows = rows.repartition(2, "id").mapInArrow(shuffled, "id string")
    keys = sorted(int(row.id) for row in rows.collect())
    parts = [mark.name.split("-")[1] for mark in Path(marks).glob("partition-*")]
    found.append({"keys": keys, "is_repeated": len(parts) > len(set(parts))})


losing.lose(Path(marks), way)
query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", folder).start()
for number in range(3):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO public.t SELECT i FROM generate_series(%s::int, %s) AS i", [100 * number, 100 * number + 99])
    while len(found) <= number:
        assert not query.awaitTermination(0.1)
query.stop()
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Processes are found as on Linux.")
@pytest.mark.parametrize("mode", ["peek", "walsender"])
@pytest.mark.parametrize("way", ["executor", "speculation"])
def test_a_partition_that_is_read_twice_has_the_same_rows(
    db18: Database, tmp_path: Path, mode: str, way: losing.How
) -> None:
    """A stage is repeated after the loss of what it had written, and a slow task is begun a second time elsewhere."""
    db18.execute("CREATE TABLE public.t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE public.t")
    create_slot(db18.connection, "s")
    marks = tmp_path / "marks"
    marks.mkdir()
    settings = {
        "spark.executorEnv.PYTHONPATH": PATHS,
        f"spark.executorEnv.{losing.FOLDER}": str(marks),
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.speculation": "true",
        "spark.speculation.task.duration.threshold": "1s" if way == "speculation" else "600s",
    }
    # With one worker, the executor that is lost has all that the stage before has written.
    with cluster(tmp_path, 1 if way == "executor" else 2) as master:
        done = subprocess.run(
            [sys.executable, "-c", REPEATED, master, db18.dsn, mode, tmp_path / "checkpoint", marks, way, json.dumps(settings)],
            env=os.environ | OF_DRIVER, capture_output=True, text=True, timeout=900,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    batches = json.loads(done.stdout.splitlines()[-1])
    assert [batch["keys"] for batch in batches] == [list(range(at, at + 100)) for at in (0, 100, 200)]
    assert batches[0]["is_repeated"]
