"""Readers of a destination that somebody hostile can write: it is data, and commands no connection, file or program."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

import logicalrep
from logicalrep.pipeline.formats.catalog_errors import CatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.formats.iceberg.catalogs.users_options import users_options
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.spark import table as spark_table
from logicalrep_runtime.errors import LogicalRepError
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests, catalog_of
from tests.pipeline.formats.iceberg.catalogs.rest_server import RestServer
from tests.pipeline.formats.iceberg.catalogs.tables import new_table
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.stored import new_stored
from tests.reader.destinations import write_identity, write_states

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")

READERS: dict[str, Callable[..., object]] = {
    "read": lambda to, **named: logicalrep.read(to, "public.t", **named).arrow(),
    "read at a time": lambda to, **named: logicalrep.read(to, "public.t", datetime.now(UTC), **named).arrow(),
    "at": lambda to, **named: logicalrep.at(to, datetime.now(UTC), **named)["public.t"].arrow(),
    "schema": lambda to, **named: logicalrep.read(to, "public.t", **named).schema,
}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "lake"))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that must get no connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_no_catalog_is_connected_to_that_only_the_destination_names(
    storage: Storage,
    listener: socket.socket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[..., object],
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__TOKEN", "secret")
    write_states(storage, 1)
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    planted = tmp_path / "planted.db"
    for catalog in (
        f"http://{address}/x",
        f"https://{address}",
        f"postgresql://{address}/x",
        f"sqlite:///{planted}",
        "glue://",
    ):
        write_identity(storage, catalog=catalog)
        with pytest.raises(StateError) as refused:
            read(storage.uri)
        assert refused.value.code == "CATALOG_NOT_NAMED"
        assert catalog in refused.value.description
        # A catalog that the caller names is the destination's, or refused before it is asked.
        with pytest.raises(StateError, match=r"\[DESTINATION_DIFFERS\]"):
            read(storage.uri, catalog=f"sqlite:///{tmp_path}/mine.db")
        assert not list(tmp_path.glob("*.db"))


def test_readers_make_no_sql_catalog(storage: Storage, tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    uri = f"sqlite:///{path}"
    write_states(storage, 1)
    write_identity(storage, catalog=uri)
    for read in READERS.values():
        with pytest.raises(CatalogError, match="does not exist"):
            read(storage.uri, catalog=uri)
    assert not path.exists()
    path.touch()
    for read in READERS.values():
        with pytest.raises(CatalogError, match="is empty"):
            read(storage.uri, catalog=uri, catalog_options={"init_catalog_tables": "true", "schema_version": "v1"})
    assert path.read_bytes() == b""


@contextmanager
def properties_of_table(
    catalog: CatalogOfTests, patch: pytest.MonkeyPatch, properties: Mapping[str, str]
) -> Iterator[None]:
    """Let a table have more properties, in the file of its metadata or in the service's answers."""
    if catalog.server is not None:
        table_of = RestServer.answer_table

        def changed(server: RestServer, parts: list[str]) -> str:
            answer = json.loads(table_of(server, parts))
            answer["metadata"]["properties"] |= properties
            answer["config"] = dict(properties)
            return json.dumps(answer)

        with patch.context() as inner:
            inner.setattr(RestServer, "answer_table", changed)
            yield
        return
    path = Path(catalog.reader.load_table("public.t").metadata_location)
    text = path.read_text()
    metadata = json.loads(text)
    metadata["properties"] |= properties
    path.write_text(json.dumps(metadata))
    yield
    path.write_text(text)


@pytest.mark.parametrize("kind", ["sqlite", "rest"])
def test_no_class_is_called_that_a_table_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    calls: list[object] = []
    planted = ModuleType("planted")
    planted.Planted = lambda *arguments: calls.append(arguments)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "planted", planted)
    with catalog_of(kind, tmp_path, monkeypatch) as catalog:
        stored = new_table(catalog.open())
        insert(stored, 1000, range(3))
        write_identity(catalog.storage, catalog=catalog.settings.shown)
        write_states(catalog.storage, stored.version)
        named: dict[str, Any] = {"catalog": catalog.settings.uri, "catalog_options": catalog.settings.options}
        with properties_of_table(catalog, monkeypatch, {"py-io-impl": "planted.Planted", "x": "y"}):
            for read in READERS.values():
                read(catalog.storage.uri, **named)
            assert catalog.open().open("public/t") is not None
        refused = "makes programs that commit to the table run a class"
        with properties_of_table(catalog, monkeypatch, {"write.py-location-provider.impl": "planted.Planted"}):
            with pytest.raises(ForeignTableError, match=refused):
                catalog.open().open("public/t")
            with pytest.raises(ForeignTableError, match=refused):
                READERS["read"](catalog.storage.uri, **named)
            if kind == "sqlite":
                # A service makes its commits itself.
                with pytest.raises(ForeignTableError, match=refused):
                    insert(stored, 3000, range(5, 6))
    assert calls == []


def test_the_users_token_goes_to_the_users_catalog_alone(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, current = tmp_path / "home", tmp_path / "current"
    home.mkdir()
    current.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    monkeypatch.chdir(current)
    stored = "catalog:\n  Default:\n    uri: https://lake.example.org/api/\n    Token: t0ken\n"
    (current / ".pyiceberg.yaml").write_text(stored)
    own, other = CatalogSettings("https://lake.example.org/api?x=1"), CatalogSettings("https://other.example.org/api")
    assert users_options(own) == {}
    (home / ".pyiceberg.yaml").write_text(stored)
    assert users_options(own)["token"] == "t0ken"
    assert users_options(other) == {}
    (home / ".pyiceberg.yaml").write_text(stored.replace("    uri: https://lake.example.org/api/\n", ""))
    assert users_options(other) == {"token": "t0ken"}
    # Over the wire.
    (home / ".pyiceberg.yaml").write_text(stored)
    behind = SqlCatalog("behind", uri=f"sqlite:///{tmp_path}/behind.db")
    with RestServer(behind).running() as server:
        connect(CatalogSettings(server.uri), storage)
        assert "t0ken" not in str(server.seen)
        monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", server.uri)
        connect(CatalogSettings(server.uri), storage)
        assert "t0ken" in str(server.seen)
    behind.engine.dispose()


def outside(folder: Path, schema: pa.Schema, address: str) -> list[str]:
    """Return the URIs of files outside of the table that a hostile log may name; the local ones are there."""
    paths = [folder / "elsewhere.parquet", folder / "lake/other.parquet"]
    for path in paths:
        pq.write_table(pa.table({name: pa.nulls(1, schema.field(name).type) for name in schema.names}), path)
    return [
        *map(str, paths),
        *(path.as_uri() for path in paths),
        *(os.path.relpath(path, folder / "lake/public/t") for path in paths),
        f"http://{address}/x.parquet",
        f"s3://bucket/{address}",
    ]


def test_no_file_outside_is_read_that_a_delta_log_names(
    storage: Storage, tmp_path: Path, listener: socket.socket, spark: SparkSession
) -> None:
    stored = new_stored(storage, ("id",))
    insert(stored, 1000, range(3))
    schema = stored.table.stored
    write_identity(storage)
    write_states(storage, stored.version)
    log = tmp_path / f"lake/public/t/_delta_log/{stored.version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    for uri in outside(tmp_path, schema, address):
        changed = [{"add": action["add"] | {"path": uri}} if "add" in action else action for action in actions]
        log.write_text("".join(f"{json.dumps(action)}\n" for action in changed))
        for read in (*READERS.values(), lambda to: spark_table(spark, f"{to}/public/t").collect()):
            with pytest.raises(LogicalRepError):
                read(storage.uri)


def test_no_file_outside_is_read_that_iceberg_metadata_name(
    storage: Storage, tmp_path: Path, listener: socket.socket
) -> None:
    stored = new_stored(storage, ("id",), table_format="iceberg")
    insert(stored, 1000, range(3))
    schema = stored.table.stored
    write_identity(storage, "iceberg")
    write_states(storage, stored.version)
    path = tmp_path / f"lake/public/t/metadata/v{stored.version}.metadata.json"
    metadata = json.loads(path.read_text())
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    for uri in outside(tmp_path, schema, address):
        for snapshot in metadata["snapshots"]:
            snapshot["manifest-list"] = uri
        path.write_text(json.dumps(metadata))
        for read in READERS.values():
            with pytest.raises(LogicalRepError):
                read(storage.uri)
    assert IcebergTables.in_folders(storage).find_folders() == {"public/t"}
