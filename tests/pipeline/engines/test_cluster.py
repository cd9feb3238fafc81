"""A standalone cluster of two workers, and an object store that all of them reach: the executors do the work."""

from __future__ import annotations

import hmac
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from deltalake import DeltaTable

pytest.importorskip("moto")

from tests.conftest import ROOT
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES
from tests.pipeline.storage.stores import start_object_store
from tests.postgres.servers import Database
from tests.spark.cluster import cluster, connect_server, submitted

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

PROGRAM = """
import sys
import logicalrep
masked = {"public.users": {"masked": {"email": "hashed"}}}
logicalrep.replicate(sys.argv[1], sys.argv[2], once=True, config={"tables": masked})
"""
MASK_KEY = "a key that only the driver has"


def hashed(text: str | None) -> str | None:
    return text and hmac.digest(MASK_KEY.encode(), text.encode(), "sha256").hex()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a master with two workers of one core each, whose environment has nothing of ours."""
    with cluster(tmp_path) as url:
        yield url


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_two_workers_replicate_into_a_store(shop: Database, master: str, tmp_path: Path, kind: str) -> None:
    """By `spark-submit`, and as a client of Spark Connect, whose server is the cluster's driver."""
    shop.execute(
        "CREATE TABLE users (id int PRIMARY KEY, email text)", "INSERT INTO users VALUES (1, 'a@b'), (2, NULL)"
    )
    # Little work is done by the driver.
    for number in range(4):
        shop.execute(
            f"CREATE TABLE large_{number} (id int PRIMARY KEY, v text)",
            f"INSERT INTO large_{number} SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 30000) AS i",
        )
    tables = [*TABLES, *(f"public.large_{number}" for number in range(4))]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    events = tmp_path / "events"
    events.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.memory": "512m",
    }
    with ExitStack() as stack:
        store = stack.enter_context(start_object_store())
        # The keys of the store and of the masks are in the environment of the command alone.
        environment = store.environment | {"LOGICALREP_MASK_KEY": MASK_KEY}
        server = stack.enter_context(connect_server(master, tmp_path, settings)) if kind == "connect" else ""

        def replicate(to: str, program: Path = program) -> subprocess.CompletedProcess[str]:
            if kind == "classic":
                return submitted(master, program, shop.dsn, to, settings=settings, environment=environment)
            return subprocess.run(
                [sys.executable, str(program), shop.dsn, to],
                env=os.environ | environment | {"SPARK_REMOTE": server},
                capture_output=True, text=True, timeout=600, check=False,
            )  # fmt: skip

        users = [(1, "a@b"), (2, None)]
        for _ in range(2):
            done = replicate("s3://lake/shop")
            assert done.returncode == 0, done.stderr[-3000:]
            output = done.stdout + done.stderr
            assert "the options of the object store travel to Spark's executors in clear" in output
            assert "spark.scheduler.mode is FIFO" in output
            assert find_differences(shop.dsn, "s3://lake/shop", tables, store.options) == {}
            table = DeltaTable("s3://lake/shop/public/users", storage_options=store.options).to_pyarrow_table()
            assert sorted(zip(*table.to_pydict().values(), strict=True)) == [(id, hashed(email)) for id, email in users]
            shop.execute(
                "UPDATE customer SET city = 'Hof' WHERE id % 2 = 0",
                "DELETE FROM orders WHERE id % 3 = 0",
                "UPDATE large_0 SET v = md5(v) WHERE id % 3 = 0",
            )
            users.append((len(users) + 1, "c@d"))
            shop.execute("UPDATE orders SET id = -id WHERE id % 5 = 0", f"INSERT INTO users VALUES {users[-1]}")
        keys = store.keys()
        assert not [key for key in keys if "/shared/" in key]
        lake = str(tmp_path / "lake")
        refused = replicate(lake)
        assert refused.returncode
        assert "DESTINATION_NOT_SHARED" in refused.stdout + refused.stderr
        # All processes of this machine mount it.
        lake = str(tmp_path / "shared")
        done = replicate(lake, ROOT / "examples" / "on_a_cluster.py")
        assert done.returncode == 0, done.stderr[-3000:]
        assert find_differences(shop.dsn, lake, tables) == {}
    ends = [json.loads(line) for path in events.iterdir() for line in path.read_text().splitlines()]
    ran = {event["Task Info"]["Executor ID"] for event in ends if event["Event"] == "SparkListenerTaskEnd"}
    assert ran == {"0", "1"}
    logged = "".join(path.read_text() for path in events.iterdir())
    assert not [secret for secret in ("the secret", MASK_KEY, "a@b", "c@d") if secret in logged]


ENCRYPTED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "a-secret-of-the-cluster",
    "spark.network.crypto.enabled": "true",
}


def test_a_cluster_that_encrypts_and_takes_turns_is_warned_of_nothing(shop: Database, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = ENCRYPTED | {"spark.scheduler.mode": "FAIR", "spark.executor.memory": "512m"}
    shop.execute("CREATE TABLE users (id int PRIMARY KEY, email text)")
    with start_object_store() as store, cluster(tmp_path, 1, settings=ENCRYPTED) as master:
        environment = store.environment | {"LOGICALREP_MASK_KEY": MASK_KEY}
        done = submitted(master, program, shop.dsn, "s3://lake/shop", settings=settings, environment=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        lines = (done.stdout + done.stderr).splitlines()
        assert not [line for line in lines if " travel to " in line or "spark.scheduler.mode is" in line]
        assert find_differences(shop.dsn, "s3://lake/shop", TABLES, store.options) == {}
