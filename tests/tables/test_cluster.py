"""A standalone cluster of two workers, and an object store that all of them reach: the executors do the work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

pytest.importorskip("moto")

from tests.conftest import ROOT
from tests.postgres.servers import Database
from tests.tables.comparison import differences
from tests.tables.stores import object_store
from tests.tables.test_replicate import TABLES, shop
from tests.waiting import eventually

__all__ = ["shop"]

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

HOME = Path(pyspark.__file__).parent
PATHS = os.pathsep.join(str(ROOT / folder) for folder in ("src", "generated", "."))
PROGRAM = """
import sys
import logicalrep
logicalrep.replicate(sys.argv[1], sys.argv[2], once=True)
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a master with two workers of one core each, whose environment has nothing of ours."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    environment |= {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    log = tmp_path / "cluster.log"

    def start(stack: ExitStack, *arguments: str) -> None:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [HOME / "bin" / "spark-class", *arguments], env=environment, stdout=output, stderr=output, cwd=tmp_path
            )
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)

    def found(pattern: str) -> list[str]:
        return re.findall(pattern, log.read_text(errors="replace"))

    with ExitStack() as stack:
        start(stack, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        eventually(lambda: bool(found(r"Starting Spark master at spark://\S+")), seconds=120)
        [url] = found(r"Starting Spark master at (spark://\S+)")
        for number in range(2):
            worker = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "-d", str(tmp_path / f"worker{number}")]
            start(stack, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", *worker, url)
        eventually(lambda: len(found("Registering worker")) == 2, seconds=120)
        yield url


def test_two_workers_replicate_into_a_store(shop: Database, master: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    events = tmp_path / "events"
    events.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executorEnv.PYTHONPATH": PATHS,
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }
    submit = [HOME / "bin" / "spark-submit", "--master", master]
    for name, value in settings.items():
        submit += ["--conf", f"{name}={value}"]
    with object_store() as store:
        # The store's keys are in the driver's environment alone.
        environment = os.environ | {name.upper(): value for name, value in store.options.items()}
        environment |= {"AWS_ENDPOINT_URL": store.url, "PYTHONPATH": PATHS, "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}

        def replicate(to: str) -> subprocess.CompletedProcess[str]:
            command = [*submit, program, shop.dsn, to]
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

        for _ in range(2):
            done = replicate("s3://lake/shop")
            assert done.returncode == 0, done.stderr[-3000:]
            assert differences(shop.dsn, "s3://lake/shop", TABLES, store.options) == {}
            shop.execute("UPDATE customer SET city = 'Hof' WHERE id % 2 = 0", "DELETE FROM orders WHERE id % 3 = 0")
            shop.execute("UPDATE orders SET id = -id WHERE id % 5 = 0")
        refused = replicate(str(tmp_path / "lake"))
    assert refused.returncode
    assert "PLACE_NOT_SHARED" in refused.stdout + refused.stderr
    ends = [json.loads(line) for path in events.iterdir() for line in path.read_text().splitlines()]
    ran = {event["Task Info"]["Executor ID"] for event in ends if event["Event"] == "SparkListenerTaskEnd"}
    assert ran == {"0", "1"}
    assert not [path for path in events.iterdir() if "the secret" in path.read_text()]
