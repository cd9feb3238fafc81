"""The databases that one command replicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.cli.databases.several import NAMES
from tests.postgres.servers import Database, create_database


@pytest.fixture
def databases() -> Iterator[Mapping[str, Database]]:
    """Yield two databases of one server, each with a table, by the names that a file gives them."""
    with create_database(18) as shop, create_database(18) as crm:
        databases = dict(zip(NAMES, (shop, crm), strict=True))
        for db in databases.values():
            db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        yield databases
