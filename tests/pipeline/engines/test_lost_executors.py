"""A cluster that loses an executor in a load and in a rewrite, or its driver: the tables end as the server's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("moto")

from tests.pipeline.comparison import find_differences
from tests.pipeline.engines import losing
from tests.pipeline.storage.stores import start_object_store
from tests.postgres.servers import Database
from tests.spark.cluster import OF_DRIVER, cluster, submission
from tests.waiting import eventually

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="Processes are found as on Linux."),
]

PROGRAM = """
import sys
import logicalrep
from logicalrep.pipeline.apply import applying
from logicalrep.pipeline.load import loading
from tests.pipeline.engines import losing
loading.copy, applying.rewrite = losing.copy, losing.rewrite
logicalrep.replicate(sys.argv[1], sys.argv[2], once=True)
"""
TABLES = ["public.one", "public.other"]


def make(db: Database) -> None:
    """Make tables whose files are no little work, whatever compresses them."""
    rows = "SELECT i, (SELECT string_agg(md5((i * 20 + j)::text), '') FROM generate_series(1, 20) AS j) FROM {} AS i"
    for name in TABLES:
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
        db.execute(f"INSERT INTO {name} {rows.format('generate_series(1, 40000)')}")


def update(db: Database) -> None:
    for name in TABLES:
        db.execute(f"UPDATE {name} SET v = reverse(v) WHERE id % 3 = 0", f"DELETE FROM {name} WHERE id % 1000 = 7")


def test_an_executor_and_the_driver_are_lost(db18: Database, tmp_path: Path) -> None:
    make(db18)
    program, marks = tmp_path / "program.py", tmp_path / "marks"
    program.write_text(PROGRAM)
    marks.mkdir()
    settings = {"spark.executor.memory": "512m", f"spark.executorEnv.{losing.FOLDER}": str(marks)}
    with ExitStack() as stack:
        store = stack.enter_context(start_object_store())
        master = stack.enter_context(cluster(tmp_path))
        log = tmp_path / "driver.log"

        def start(to: str) -> subprocess.Popen[bytes]:
            with log.open("wb") as output:
                return subprocess.Popen(
                    submission(master, program, db18.dsn, to, settings=settings),
                    env=os.environ | OF_DRIVER | store.environment,
                    stdout=output, stderr=output, start_new_session=True,
                )  # fmt: skip

        def replicate(to: str) -> None:
            assert start(to).wait(600) == 0, log.read_text()[-3000:]
            assert find_differences(db18.dsn, to, TABLES, store.options) == {}

        replicate("s3://lake/executors")
        assert marks_of(marks) == ["copy"]
        update(db18)
        replicate("s3://lake/executors")
        assert marks_of(marks) == ["copy", "rewrite"]
        for mark in marks.iterdir():
            mark.unlink()
        (marks / losing.OF_DRIVER).touch()
        driver = start("s3://lake/drivers")
        eventually((marks / "copy").exists)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        # The next one loses nothing.
        (marks / losing.OF_DRIVER).unlink()
        replicate("s3://lake/drivers")


def marks_of(folder: Path) -> Sequence[str]:
    return sorted(path.name for path in folder.iterdir())
