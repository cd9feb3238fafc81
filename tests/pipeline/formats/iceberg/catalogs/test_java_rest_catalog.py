"""Tables in the REST catalog of Iceberg's own project, in Java: `replicate`, its readers, and a second writer."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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
from tests.pipeline.formats.iceberg.catalogs.live_servers import KEY, SECRET, LiveCatalog, free_ports, running
from tests.pipeline.formats.iceberg.catalogs.tables import new_table
from tests.pipeline.formats.iceberg.catalogs.whole_run import CHANGES_OF_COLUMNS, WholeRun
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.replicating import replicate_once
from tests.pipeline.storage.stores import start_object_store
from tests.postgres.servers import Database

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
    if not list(_JARS.glob("iceberg-aws-bundle-*.jar")) and subprocess.run(_FETCH, capture_output=True).returncode:
        pytest.skip("Maven cannot fetch Iceberg's own REST catalog here")
    return f"{_JARS}/*"


@contextmanager
def start_catalog(jars: str, folder: Path, **variables: str) -> Iterator[str]:
    """Run the catalog, whose entries are in a file of SQLite; yield its URI."""
    (port,) = free_ports(1)
    variables = {
        "URI": f"jdbc:sqlite:{folder}/catalog.db", "WAREHOUSE": str(folder / "warehouse"), "REST_PORT": str(port),
        **variables,
    }  # fmt: skip
    command = ["java", "-Xmx256m", "-cp", jars, "org.apache.iceberg.rest.RESTCatalogServer"]
    environment = os.environ | {f"CATALOG_{name}": value for name, value in variables.items()}
    with running(command, folder / "catalog.log", [port], environment):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def uri(jars: str, tmp_path: Path) -> Iterator[str]:
    with start_catalog(jars, tmp_path) as uri:
        yield uri


def rows_of(uri: str, name: str) -> list[tuple[Any, ...]]:
    """Return a table's rows as a reader of the catalog has them."""
    rows = RestCatalog("default", uri=uri).load_table(name).scan().to_arrow()
    return sorted(tuple(row.values()) for row in rows.to_pylist())


@pytest.mark.parametrize("version", [2, 3])
def test_tables_follow_and_are_read_now_and_as_of_a_time(
    version: int, db18: Database, tmp_path: Path, uri: str
) -> None:
    limits = Limits(small_file_bytes=1, marked_share=1, past_state_seconds=1e-6)
    db18.execute("CREATE TABLE lines (id int PRIMARY KEY, a text, b int)")
    db18.execute("INSERT INTO lines SELECT i, 'text ' || i, i FROM generate_series(1, 20) AS i")
    lake, settings = tmp_path / "lake", CatalogSettings(uri, OURS)
    config = {"tables": {"lines": {"partition_by": "bucket(2, id)"}}}
    options: dict[str, Any] = {
        "format": "iceberg",
        "format_version": version,
        "catalog": uri,
        "catalog_options": OURS,
        "write_mode": "merge-on-read",
        "config": config,
    }
    times: list[datetime] = []
    for number, statement in enumerate(CHANGES_OF_COLUMNS):
        db18.execute(statement)
        # The third run upgrades the tables.
        version_of_run = {} if number > 1 else {"format_version": 2}
        replicate_once(db18, lake, limits=limits, history=True, **options | version_of_run)
        times.append(db18.value("SELECT clock_timestamp()"))
    expected = [(1, "text 1", "1.50"), (2, "text 2", "2.00"), (3, "text 3", "1.50")]
    assert [(number, name, str(c)) for number, name, c in rows_of(uri, "public.lines")] == expected
    assert len(rows_of(uri, "public.lines_history")) == 21
    assert RestCatalog("default", uri=uri).load_table("public.lines").format_version == version
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


@pytest.mark.parametrize("version", [2, 3])
def test_the_catalog_chooses_folders(version: int, db18: Database, tmp_path: Path, uri: str) -> None:
    WholeRun(db18, tmp_path / "lake", LiveCatalog(uri), format_version=version).play()
    assert not list((tmp_path / "warehouse").rglob("*.parquet"))


def test_the_catalog_chooses_places_in_a_store_and_vends_its_credentials(
    db18: Database, tmp_path: Path, jars: str
) -> None:
    with start_object_store() as store:
        store.accepts = lambda key: key in (KEY, "key")
        settings = {
            "WAREHOUSE": "s3://lake/warehouse",
            "IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
            "CLIENT_REGION": "us-east-1",
            "S3_ENDPOINT": store.url,
            "S3_PATH__STYLE__ACCESS": "true",
            "S3_ACCESS__KEY__ID": KEY,
            "S3_SECRET__ACCESS__KEY": SECRET,
            "INCLUDE__CREDENTIALS": "true",
        }
        with start_catalog(jars, tmp_path, **settings) as uri:
            options = {"s3.endpoint": store.url, "s3.region": "us-east-1"}
            WholeRun(db18, tmp_path / "lake", LiveCatalog(uri, options, {"aws_allow_http": "true"})).play()
        keys = store.keys()
        assert not [key for key in keys if key.endswith(".parquet")]
