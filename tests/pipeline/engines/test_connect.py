"""The engine over Spark Connect: what is at the destination meanwhile, large items, and errors in a sentence."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.engines.engine import EngineError, Shared
from logicalrep.pipeline.engines.spark.connect import SHARED, ConnectJobs
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from tests.pipeline.comparison import find_differences
from tests.postgres.servers import Database
from tests.waiting import eventually

PROGRAM = """
import sys
import logicalrep
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").getOrCreate()
logicalrep.replicate(sys.argv[1], sys.argv[2], once=True)
assert spark.range(3).count() == 3
assert "Connect" not in type(spark).__name__ and "connect" in type(spark).__module__
spark.stop()
"""


@dataclass(frozen=True)
class _Part:
    shared: Shared[str]
    number: int


def _letter(part: _Part) -> str:
    return part.shared.value[part.number]


def test_a_shared_value_is_at_the_destination_while_it_is_needed(connect: Any, tmp_path: Path) -> None:
    storage, folder = Storage(str(tmp_path)), tmp_path / SHARED
    storage.write(f"{SHARED}/of-a-killed-process", b"")
    with ConnectJobs(connect, storage) as jobs:
        engine = SparkEngine(jobs)
        assert list(folder.iterdir()) == []
        with engine.share("abc") as shared:
            [path] = folder.iterdir()
            assert engine.run(_letter, [_Part(shared, 2)], 0) == ["c"]
        with engine.share("def") as shared:
            [path] = folder.iterdir()
            path.write_bytes(path.read_bytes().replace(b"def", b"xyz"))
            with pytest.raises(DamagedError, match="is not what this run has written"):
                engine.run(_letter, [_Part(shared, 2)], 0)
        assert list(folder.iterdir()) == []


def test_a_session_shows_that_it_lives(connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends a session that was idle for an hour."""
    asked: list[str] = []

    class Conf:
        def get(self, name: str) -> str:
            asked.append(name)
            raise OSError("the server is away for a moment")

    class Session:
        conf = Conf()

    with ConnectJobs(Session(), Storage(str(tmp_path), limits=Limits(alive_seconds=0.01))):
        eventually(lambda: len(asked) > 2)


@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED")
def test_a_server_that_is_unreachable_is_reported_in_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        session: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{closed.getsockname()[1]}").create()
        # In place of ten minutes.
        session.client.set_retry_policies([DefaultPolicy(max_retries=1, initial_backoff=1)])
        with (
            ConnectJobs(session, Storage(str(tmp_path))) as jobs,
            pytest.raises(EngineError, match=r"^\[TASKS_FAILED\] Spark could not run a task: .*Connection refused$"),
        ):
            SparkEngine(jobs).run(len, ["a"], 0)
        session.client.close()


@pytest.mark.thorough
def test_the_largest_item_is_sent(connect: Any, tmp_path: Path) -> None:
    with ConnectJobs(connect, Storage(str(tmp_path))) as jobs:
        assert (
            SparkEngine(jobs).run_together(len, bytes(Limits().sent_bytes), Limits().sent_bytes) == Limits().sent_bytes
        )


@pytest.mark.thorough
def test_the_session_of_a_program_replicates(connect: Any, db18: Database, tmp_path: Path) -> None:
    """Its Java starts in the program: with SPARK_TESTING, at any free port."""
    db18.execute(
        "CREATE TABLE large (id int PRIMARY KEY, v text)",
        "INSERT INTO large SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 30000) AS i",
    )
    environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, db18.dsn, str(tmp_path)],
            env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        assert find_differences(db18.dsn, str(tmp_path), ["public.large"]) == {}
        db18.execute("UPDATE large SET v = md5(v) WHERE id % 3 = 0", "DELETE FROM large WHERE id % 7 = 0")
