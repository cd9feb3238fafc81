"""Fixtures for tests on real servers, which are skipped if psycopg or a server is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

if importlib.util.find_spec("psycopg") is None:
    collect_ignore_glob = ["*"]
else:
    from tests.postgres.servers import SERVERS, Database, database, stop_all

    @pytest.fixture(params=SERVERS)
    def db(request: pytest.FixtureRequest) -> Iterator[Database]:
        """Yield a database on each available server."""
        with database(request.param) as made:
            yield made

    @pytest.fixture
    def db18() -> Iterator[Database]:
        """Yield a database on PostgreSQL 18."""
        with database(18) as made:
            yield made

    @pytest.fixture(scope="session", autouse=True)
    def _servers() -> Iterator[None]:
        yield
        stop_all()
