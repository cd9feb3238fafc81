"""A standalone cluster of two workers, and an object store that all of them reach: the executors do the work."""

from __future__ import annotations

import hmac
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

pytest.importorskip("moto")

from tests.pipeline.comparison import find_differences
from tests.pipeline.storage.stores import start_object_store
from tests.pipeline.test_replicate import TABLES, shop
from tests.postgres.servers import Database
from tests.spark.cluster import cluster, submitted

__all__ = ["shop"]

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


def test_two_workers_replicate_into_a_store(shop: Database, master: str, tmp_path: Path) -> None:
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
    with start_object_store() as store:
        # The keys of the store and of the masks are in the driver's environment alone.
        environment = store.environment | {"LOGICALREP_MASK_KEY": MASK_KEY}

        def replicate(to: str) -> subprocess.CompletedProcess[str]:
            return submitted(master, program, shop.dsn, to, settings=settings, environment=environment)

        users = [(1, "a@b"), (2, None)]
        for _ in range(2):
            done = replicate("s3://lake/shop")
            assert done.returncode == 0, done.stderr[-3000:]
            assert find_differences(shop.dsn, "s3://lake/shop", tables, store.options) == {}
            there = DeltaTable("s3://lake/shop/public/users", storage_options=store.options).to_pyarrow_table()
            assert sorted(zip(*there.to_pydict().values(), strict=True)) == [(id, hashed(email)) for id, email in users]
            shop.execute("UPDATE customer SET city = 'Hof' WHERE id % 2 = 0", "DELETE FROM orders WHERE id % 3 = 0")
            users.append((len(users) + 1, "c@d"))
            shop.execute("UPDATE orders SET id = -id WHERE id % 5 = 0", f"INSERT INTO users VALUES {users[-1]}")
        refused = replicate(str(tmp_path / "lake"))
    assert refused.returncode
    assert "DESTINATION_NOT_SHARED" in refused.stdout + refused.stderr
    ends = [json.loads(line) for path in events.iterdir() for line in path.read_text().splitlines()]
    ran = {event["Task Info"]["Executor ID"] for event in ends if event["Event"] == "SparkListenerTaskEnd"}
    assert ran == {"0", "1"}
    told = "".join(path.read_text() for path in events.iterdir())
    assert not [secret for secret in ("the secret", MASK_KEY, "a@b", "c@d") if secret in told]
