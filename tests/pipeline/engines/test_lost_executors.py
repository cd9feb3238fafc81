"""A cluster that loses an executor in a load and in a rewrite, or its driver: the tables end as the server's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("moto")

from tests.pipeline.comparison import find_differences
from tests.pipeline.engines import losing
from tests.pipeline.engines.losing import How, is_lost, lose, was_repeated
from tests.pipeline.storage.stores import Store, start_object_store
from tests.postgres.servers import Database
from tests.spark.cluster import OF_DRIVER, cluster, connect_server, submission
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
from logicalrep.pipeline.load import snapshot_copy
from tests.pipeline.engines import losing
snapshot_copy.copy, applying.rewrite = losing.copy, losing.rewrite
logicalrep.replicate(sys.argv[1], sys.argv[2], once=True)
"""
TABLES = ["public.one", "public.other"]
LONGEST = 900.0
"""The longest time of a run on a machine that is busy with others, in seconds."""


def make(db: Database) -> None:
    """Make tables whose files are no little work, whatever compresses them."""
    rows = "SELECT i, (SELECT string_agg(md5((i * 20 + j)::text), '') FROM generate_series(1, 20) AS j) FROM {} AS i"
    for name in TABLES:
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
        db.execute(f"INSERT INTO {name} {rows.format('generate_series(1, 40000)')}")


def update(db: Database) -> None:
    for name in TABLES:
        db.execute(f"UPDATE {name} SET v = reverse(v) WHERE id % 3 = 0", f"DELETE FROM {name} WHERE id % 1000 = 7")


class Runs:
    """Runs on a cluster by `spark-submit`, or, with a server, as clients of Spark Connect."""

    def __init__(
        self, db: Database, store: Store, master: str, server: str, settings: dict[str, str], folder: Path
    ) -> None:
        self._db, self._store, self._master, self._server, self._settings = db, store, master, server, settings
        self._log, self._program = folder / "driver.log", folder / "program.py"
        self._program.write_text(PROGRAM)

    def start(self, to: str) -> subprocess.Popen[bytes]:
        command = submission(self._master, self._program, self._db.dsn, to, settings=self._settings)
        environment = os.environ | OF_DRIVER | self._store.environment
        if self._server:
            command = [sys.executable, str(self._program), self._db.dsn, to]
            environment |= {"SPARK_REMOTE": self._server}
        with self._log.open("wb") as output:
            return subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)

    def replicate(self, to: str) -> None:
        """Run once; the tables are the server's then."""
        assert self.start(to).wait(LONGEST) == 0, self._log.read_text()[-3000:]
        assert find_differences(self._db.dsn, to, TABLES, self._store.options) == {}

    def kill(self, to: str, marks: Path, kind: str) -> None:
        """Run, and kill the process whose tasks these are once one of a kind has begun."""
        lose(marks, "driver", kind)
        driver = self.start(to)
        eventually(lambda: is_lost(marks, kind) or driver.poll() is not None, seconds=LONGEST)
        assert driver.poll() is None, self._log.read_text()[-3000:]
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        # Another kind of loss, where no executor is left to lose: a waiting task continues.
        lose(marks, "executor")


@contextmanager
def runs(db: Database, tmp_path: Path, kind: str, marks: Path, **settings: str) -> Iterator[Runs]:
    marks.mkdir()
    settings |= {"spark.executor.memory": "512m", f"spark.executorEnv.{losing.FOLDER}": str(marks)}
    make(db)
    with ExitStack() as stack:
        store = stack.enter_context(start_object_store())
        master = stack.enter_context(cluster(tmp_path))
        server = stack.enter_context(connect_server(master, tmp_path, settings)) if kind == "connect" else ""
        yield Runs(db, store, master, server, settings, tmp_path)


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_an_executor_and_the_driver_are_lost(db18: Database, tmp_path: Path, kind: str) -> None:
    """The driver of Spark Connect is the client: its server continues the tasks that it had begun."""
    marks, to = tmp_path / "marks", "s3://lake/one"
    with runs(db18, tmp_path, kind, marks) as run:
        lose(marks, "executor")
        run.replicate(to)
        assert is_lost(marks, "copy")
        update(db18)
        run.replicate(to)
        assert is_lost(marks, "rewrite")
        update(db18)
        run.kill(to, marks, "rewrite")
        run.replicate(to)
        run.kill("s3://lake/other", marks, "copy")
        run.replicate("s3://lake/other")


@pytest.mark.parametrize("how", ["speculation", "decommission"])
def test_tasks_run_twice_and_executors_leave(db18: Database, tmp_path: Path, how: How) -> None:
    marks = tmp_path / "marks"
    settings = {
        "spark.speculation": "true",
        # Also where a stage has one task.
        "spark.speculation.task.duration.threshold": "1s",
    }
    if how == "decommission":
        settings = {"spark.decommission.enabled": "true"}
    with runs(db18, tmp_path, "classic", marks, **settings) as run:
        lose(marks, how)
        run.replicate("s3://lake/one")
        update(db18)
        run.replicate("s3://lake/one")
    for kind in ("copy", "rewrite"):
        assert is_lost(marks, kind)
        assert was_repeated(marks, kind) == (how == "speculation")
