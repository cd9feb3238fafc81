"""Destinations that releases and this code have written, and checkpoints of this code, are read and resumed."""

from __future__ import annotations

import fcntl
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.state.requests import PausedError, resume
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.reader import read
from tests.compatibility.releases import FOLDER, QUERIES, RELEASES, query, replicate, write
from tests.compatibility.server import LATER, server, stored_server
from tests.pipeline.comparison import find_differences
from tests.postgres.servers import Database

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

TABLES = [f"public.{name}" for name in ("plain", "whole", "parted", "toasted", "loading")]


VERSIONS = ["this code", *sorted(path.name.removesuffix(".tar.xz") for path in RELEASES.glob("*.tar.xz"))]


@pytest.fixture
def release() -> Iterator[Path]:
    """Yield the folder for the files of a release; one test at a time uses it."""
    with open(f"{FOLDER}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        yield FOLDER
        shutil.rmtree(FOLDER)


@pytest.fixture(params=VERSIONS)
def database(request: pytest.FixtureRequest, release: Path) -> Iterator[Database]:
    """Yield the server of the files, with changes that the files have, and later changes that they lack."""
    with ExitStack() as stack:
        if request.param == "this code":
            database = stack.enter_context(server())
            write(release, database)
        else:
            with tarfile.open(RELEASES / f"{request.param}.tar.xz") as tar:
                tar.extractall(release, filter="data")
            database = stack.enter_context(stored_server(release / "server"))
        database.execute(*LATER.split(";\n"))
        yield database


@pytest.fixture
def database_of_queries(release: Path, spark: Any) -> Iterator[Database]:
    """Yield the server of queries' checkpoints that this code has written, with later changes."""
    with server() as database:
        write(release, database, spark)
        database.execute(*LATER.split(";\n"))
        yield database


def test_a_destination_of_a_release_resumes(release: Path, database: Database) -> None:
    lake = release / "lake"
    storage = Storage(str(lake))
    old_state = State.read(storage)
    status = query_status(database.settings, storage)
    assert status.paused_since is not None
    assert status.lost is None
    assert {name: table["state"] for name, table in status.tables.items()} == {
        name: "loading" if name == "public.loading" else "following" for name in old_state.tables
    }
    with pytest.raises(PausedError):
        replicate(database, lake)
    resume(storage)
    replicate(database, lake)
    new_state = State.read(storage)
    assert {name for name, table in new_state.tables.items() if table.load != old_state.tables[name].load} == {
        "public.toasted",  # This was asked for.
        "public.loading",
    }
    assert find_differences(database.dsn, str(lake), TABLES) == {}
    kept = DeltaTable(str(lake / "public/kept")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["v"]) for row in kept if not row["_is_deleted"]) == database.rows(
        "SELECT id, v FROM kept ORDER BY id"
    )
    assert sorted(row["id"] for row in kept if row["_is_deleted"]) == [8, 9]
    versions = DeltaTable(str(lake / "public/kept~history")).to_pyarrow_table().to_pylist()
    assert Counter((row["v"], row["_is_current"]) for row in versions) == Counter(
        {("first", True): 4, ("first", False): 6, ("second", True): 2, ("second", False): 2, ("third", True): 2}
    )
    changes = DeltaTable(str(lake / "public/kept~changes")).to_pyarrow_table()
    assert Counter(changes["_change_type"].to_pylist()) == Counter({"update_postimage": 6, "delete": 2})
    texts = DeltaTable(str(lake / "public/texts")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["day_text"]) for row in texts) == [(1, None), (2, None), (3, "-infinity")]


def test_an_iceberg_destination_of_a_release_resumes(release: Path, database: Database) -> None:
    lake = release / "iceberg"
    old_state = State.read(Storage(str(lake)))
    replicate(database, lake)
    new_state = State.read(Storage(str(lake)))
    assert {name: table.load for name, table in new_state.tables.items()} == {
        name: table.load for name, table in old_state.tables.items()
    }
    assert new_state.lsn > old_state.lsn
    for name in TABLES:
        rows = read(lake, name).arrow().to_pylist()
        assert Counter(tuple(row.values()) for row in rows) == Counter(database.rows(f"SELECT * FROM {name}"))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_continues(spark: Any, release: Path, database_of_queries: Database, name: str) -> None:
    rows = query(spark, database_of_queries, name, release / name)
    if name == "typed":
        assert Counter(row._change_type for row in rows) == Counter({"insert": 1, "update_postimage": 44})
        assert next(row.v for row in rows if row.id == 1000) == "later"
        return
    assert Counter(row.table for row in rows) == Counter(
        {"plain": 45, "whole": 2, "parted": 16, "toasted": 3, "kept": 3, "texts": 1, "loading": 11}
    )
