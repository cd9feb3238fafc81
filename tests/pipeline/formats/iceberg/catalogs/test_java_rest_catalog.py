"""Tables in the REST catalog of Iceberg's own project, in Java: `replicate`, its readers, and a second writer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

import logicalrep
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import WriterError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from tests.conftest import ROOT
from tests.pipeline.formats.iceberg.catalogs.tables import new_table
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

OURS = {"access-delegation": "none"}
"""The catalog leaves the locations to replicate."""

pytestmark = pytest.mark.thorough

_JARS = ROOT / "build/jars/rest-catalog"
_FETCH = [
    "mvn", "--quiet", "--batch-mode", "--file", str(Path(__file__).with_name("rest_catalog.xml")),
    "dependency:copy-dependencies", f"-DoutputDirectory={_JARS}",
]  # fmt: skip


@pytest.fixture(scope="module")
def jars() -> str:
    """Return the class path of the catalog, once it is in build/."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing, so that Iceberg's own REST catalog does not run")
    if not list(_JARS.glob("iceberg-open-api-*.jar")) and subprocess.run(_FETCH, capture_output=True).returncode:
        pytest.skip("Maven cannot fetch Iceberg's own REST catalog here")
    return f"{_JARS}/*"


@pytest.fixture
def uri(jars: str, tmp_path: Path) -> Iterator[str]:
    """Run the catalog, whose entries are in a file of SQLite; yield its URI."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    variables = {"URI": f"jdbc:sqlite:{tmp_path}/catalog.db", "WAREHOUSE": str(tmp_path), "REST_PORT": str(port)}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            ["java", "-Xmx256m", "-cp", jars, "org.apache.iceberg.rest.RESTCatalogServer"],
            env=os.environ | {f"CATALOG_{name}": value for name, value in variables.items()},
            stdout=log, stderr=log,
        )  # fmt: skip

    def answers() -> bool:
        assert server.poll() is None, (tmp_path / "log").read_text()
        with closing(socket.socket()) as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(answers, seconds=120)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


def rows_of(uri: str, name: str) -> list[tuple[Any, ...]]:
    """Return a table's rows as a reader of the catalog has them."""
    rows = RestCatalog("default", uri=uri).load_table(name).scan().to_arrow()
    return sorted(tuple(row.values()) for row in rows.to_pylist())


def test_tables_follow_and_are_read_now_and_as_of_a_time(db18: Database, tmp_path: Path, uri: str) -> None:
    limits = Limits(small_file_bytes=1, marked_share=1, past_state_seconds=1e-6)
    db18.execute("CREATE TABLE lines (id int PRIMARY KEY, a text, b int)")
    db18.execute("INSERT INTO lines SELECT i, 'text ' || i, i FROM generate_series(1, 20) AS i")
    lake, settings = tmp_path / "lake", CatalogSettings(uri, OURS)
    config = {"tables": {"lines": {"partition_by": "bucket(2, id)"}}}
    options: dict[str, Any] = {
        "format": "iceberg",
        "catalog": uri,
        "catalog_options": OURS,
        "write_mode": "merge-on-read",
        "config": config,
    }
    times: list[datetime] = []
    for statement in (
        "SELECT 1",
        "DELETE FROM lines WHERE id > 3",
        "ALTER TABLE lines ADD COLUMN c numeric(5, 2) DEFAULT 1.5",
        "ALTER TABLE lines RENAME COLUMN a TO name",
        "ALTER TABLE lines DROP COLUMN b",
        "UPDATE lines SET c = 2 WHERE id = 2",
    ):
        db18.execute(statement)
        replicate_once(db18, lake, limits=limits, history=True, **options)
        times.append(db18.value("SELECT clock_timestamp()"))
    expected = [(1, "text 1", "1.50"), (2, "text 2", "2.00"), (3, "text 3", "1.50")]
    assert [(number, name, str(c)) for number, name, c in rows_of(uri, "public.lines")] == expected
    assert len(rows_of(uri, "public.lines_history")) == 21
    read = [logicalrep.read(lake, "lines", at, catalog=uri, catalog_options=OURS) for at in times]
    assert [len(entry.arrow()) for entry in read] == [20, 3, 3, 3, 3, 3]
    assert [entry.schema.names[1:] for entry in (read[0], read[2], read[-1])] == [
        ["a", "b"],
        ["a", "b", "c"],
        ["name", "c"],
    ]
    assert len(logicalrep.read(lake, "lines", catalog=uri, catalog_options=OURS).arrow()) == 3
    connection, storage = ConnectionSettings(db18.dsn), Storage(str(lake), limits=limits)
    resync(connection, storage, ())
    replicate_once(db18, lake, limits=limits, history=True, **options)
    assert [entry.result for entry in verify(connection, storage, catalog=settings)] == ["equal"]
    drop(connection, storage, deletes_tables=True, catalog=settings)
    assert RestCatalog("default", uri=uri).list_tables("public") == []


def test_a_second_writer_is_refused(tmp_path: Path, uri: str) -> None:
    tables = IcebergTables.in_catalog(Storage(str(tmp_path / "lake")), CatalogSettings(uri, OURS))
    stored = new_table(tables)
    other = tables.open("public/t")
    assert other is not None
    insert(stored, 1000, range(3))
    for _ in range(2):
        with pytest.raises(WriterError):
            insert(other, 1000, range(3))
    insert(stored, 1001, range(3, 5))
    assert [row[0] for row in rows_of(uri, "public.t")] == [0, 1, 2, 3, 4]
