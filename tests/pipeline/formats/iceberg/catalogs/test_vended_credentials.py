"""Credentials that a catalog hands out: replicate, its engines and readers renew them, and write them nowhere."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import logicalrep
from logicalrep.observe.observer import Observers
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.catalog_errors import CatalogError, InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.owner_server import Fault
from tests.pipeline.formats.iceberg.catalogs.vending import SECRET, Vending
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.replicating import replicate_once, settings
from tests.pipeline.storage.stores import start_object_store
from tests.pipeline.stored import APP
from tests.postgres.servers import Database
from tests.waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")

SETTINGS = TableSettings(format="iceberg")


@pytest.fixture
def vending() -> Iterator[Vending]:
    with start_object_store() as store:
        vending = Vending(store)
        with vending.server.running():
            yield vending


def test_tables_are_replicated_and_read_with_credentials_of_the_catalog(
    db18: Database, tmp_path: Path, vending: Vending, capfd: pytest.CaptureFixture[str]
) -> None:
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO orders SELECT i, 'v' || i FROM generate_series(1, 20) AS i")
    lake, uri = tmp_path / "lake", vending.server.uri
    options: dict[str, Any] = {"storage_options": {"aws_allow_http": "true"}, "catalog": uri}
    named: dict[str, Any] = {**options, "format": "iceberg", "history": True}
    replicate_once(db18, lake, **named)
    for statement in (
        "DELETE FROM orders WHERE id > 3",
        "ALTER TABLE orders ADD COLUMN c int DEFAULT 7",
        "UPDATE orders SET v = 'new' WHERE id = 2",
        "ALTER TABLE orders RENAME TO purchases",
        "INSERT INTO purchases VALUES (4, 'v4', 4)",
    ):
        db18.execute(statement)
        replicate_once(db18, lake, **named)
    rows = logicalrep.read(lake, "purchases", **options).polars().rows()
    assert sorted(rows) == [(1, "v1", 7), (2, "new", 7), (3, "v3", 7), (4, "v4", 4)]
    storage, settings = Storage(str(lake), options["storage_options"]), CatalogSettings(uri)
    connection = ConnectionSettings(db18.dsn)
    assert {verdict.result for verdict in verify(connection, storage, catalog=settings)} == {"equal"}
    # All files of tables are where the catalog has put them, and nothing has a credential.
    assert not list(lake.rglob("*.parquet"))
    texts = [path.read_bytes() for path in lake.rglob("*") if path.is_file()]
    keys = vending.store.keys()
    texts += [vending.store.client.get_object(Bucket="lake", Key=key)["Body"].read() for key in keys]
    shown = capfd.readouterr()
    assert not any(SECRET.encode() in text for text in (*texts, shown.out.encode(), shown.err.encode()))
    drop(connection, storage, deletes_tables=True, catalog=settings)
    assert vending.server.tables == {}
    assert not [path for path in lake.rglob("*") if path.is_file()]
    keys = vending.store.keys()
    assert not [key for key in keys if key.startswith("warehouse")]


def test_expired_credentials_are_renewed_for_an_open_table(vending: Vending, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"), {"aws_allow_http": "true"})
    tables, spec = IcebergTables.in_catalog(storage, CatalogSettings(vending.server.uri)), table(("id",), SETTINGS)
    tables.prepare("public/t", spec)
    stored = tables.replace("public/t", NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24), None)
    for number in range(3):
        vending.until.clear()
        deadline = time.monotonic() + 30
        while stored.applied(APP) != Lsn(1000 + number):
            # The store's client uses credentials again that it has just got: replicate retries as after other errors.
            with suppress(StorageError):
                insert(stored, 1000 + number, range(number, number + 1))
            assert time.monotonic() < deadline
    assert sum(file.rows for file in stored.files.values()) == 3
    # Another process asks for credentials of its own.
    pickled = pickle.dumps(tables.storage)
    assert SECRET.encode() not in pickled
    assert all(pickle.loads(pickled).read(f"public/t/{path}") for path in stored.files)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.thorough, pytest.mark.spark])])
def test_loads_and_readers_outlive_their_credentials(engine: str, db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE large (id int PRIMARY KEY, v text)",
        "INSERT INTO large SELECT i, repeat('x', 500) FROM generate_series(1, 10000) AS i",
    )
    # Other processes have all work, and small files make many requests.
    limits = Limits(in_process_bytes=0, range_bytes=200_000, file_rows=500)
    with start_object_store() as store:
        # They are renewed after a second.
        vending = Vending(store, seconds=2)
        with vending.server.running():
            named: dict[str, Any] = {"storage_options": {"aws_allow_http": "true"}, "catalog": vending.server.uri}
            options = {**named, "format": "iceberg", "engine": engine, "load_sessions": 1, "load_rate": 0.6}
            replicate_with(settings(db18, tmp_path, once=True, **options), Observers(), limits=limits)
            first = min(vending.until.values())
            assert time.time() > first
            assert len(vending.used) > 3
            batches = iter(logicalrep.read(tmp_path, "large", **named).batches())
            rows = next(batches).num_rows
            used = len(vending.used)
            eventually(lambda: time.time() > max(vending.until.values()))
            rows += sum(batch.num_rows for batch in batches)
            assert (rows, len(vending.used) > used) == (10_000, True)


def test_credentials_are_asked_for_once_in_half_of_their_time_and_used_until_they_expire(
    vending: Vending, tmp_path: Path
) -> None:
    vending.seconds = 60
    storage = Storage(str(tmp_path / "lake"), {"aws_allow_http": "true"})
    tables, spec = IcebergTables.in_catalog(storage, CatalogSettings(vending.server.uri)), table(("id",), SETTINGS)
    tables.prepare("public/t", spec)
    new = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
    stored = tables.replace("public/t", new, None)
    vending.used.clear()
    for number in range(3):
        insert(stored, 1000 + number, range(number, number + 1))
    assert len(vending.used - {"key"}) == 1


def test_credentials_are_used_until_they_expire_if_the_catalog_fails(vending: Vending) -> None:
    storage = Storage("s3://lake/elsewhere", vending.store.options)
    vending.seconds = 2
    tables = IcebergTables.in_catalog(storage, CatalogSettings(vending.server.uri))
    tables.prepare("public/t", table(("id",), SETTINGS))
    provider = tables.storage.places["public/t"].storage.credentials  # type: ignore[attr-defined]
    first = provider()
    vending.server.trouble = lambda method, path: Fault(method, path, 503)
    eventually(lambda: time.time() > first["expires_at"].timestamp() - 300)
    assert provider() == first
    with pytest.raises(CatalogError):
        eventually(lambda: provider() != first)


def test_a_catalog_that_signs_requests_itself_is_refused(vending: Vending, tmp_path: Path) -> None:
    vending.server.vend = lambda: {"s3.remote-signing-enabled": "true"}
    tables = IcebergTables.in_catalog(Storage(str(tmp_path)), CatalogSettings(vending.server.uri))
    with pytest.raises(InvalidCatalogError, match="signs each request"):
        tables.prepare("public/t", table(("id",), SETTINGS))


def test_an_unknown_way_of_access_is_refused() -> None:
    with pytest.raises(OptionError, match="access-delegation=remote-signing"):
        CatalogSettings("https://catalog.example.org", {"access-delegation": "remote-signing"})
