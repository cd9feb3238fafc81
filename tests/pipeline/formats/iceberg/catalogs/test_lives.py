"""A table's life in each catalog: a load, changes of rows and columns, kills, a resync; then every reader has its rows.

`make test` kills runs in this process at their writes. The thorough tests kill commands at random, also while a catalog
answers, and have each catalog with folders and with a store whose credentials expire.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog

import logicalrep
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.transactions.table_names import TableName
from tests.pipeline.command import Command
from tests.pipeline.comparison import counted, source_rows
from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of
from tests.pipeline.formats.iceberg.catalogs.named import CATALOGS
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer, Warehouse
from tests.pipeline.formats.iceberg.catalogs.random_service import RandomService
from tests.pipeline.formats.iceberg.catalogs.vending import Vending
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.replicating import replicate_once
from tests.pipeline.storage.stores import start_object_store
from tests.pipeline.stored import MODES, WriteMode
from tests.postgres.servers import Database

pytestmark = [pytest.mark.postgres, pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")]

SETUP = """
CREATE TABLE life (id int PRIMARY KEY, v text, n int, at timestamptz DEFAULT '2026-01-02 03:04:05+00');
INSERT INTO life SELECT i, 'v' || i, i FROM generate_series(1, 300) AS i
"""
STEPS = [
    (
        "UPDATE life SET v = 'changed' WHERE id % 7 = 0",
        "DELETE FROM life WHERE id % 11 = 0",
        "INSERT INTO life VALUES (1000, NULL, 0)",
    ),
    ("ALTER TABLE life ADD COLUMN c int DEFAULT 7", "UPDATE life SET c = 8 WHERE id % 5 = 0"),
    (
        "ALTER TABLE life RENAME COLUMN v TO w",
        "ALTER TABLE life DROP COLUMN n",
        "UPDATE life SET id = -id WHERE id % 13 = 0",
    ),
    ("ALTER TABLE life ALTER COLUMN c TYPE bigint", "INSERT INTO life VALUES (2000, 'x', now(), 5000000000)"),
]
LIMITS = Limits(small_file_bytes=1, marked_share=1, loads_at_once=1_000_000)
_LAST_KILL = 25


@dataclass(frozen=True)
class Place:
    """A catalog, and a destination."""

    settings: CatalogSettings
    to: Path
    storage_options: Mapping[str, str] = field(default_factory=dict)
    service: RandomService | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of a reader."""
        named = {"catalog": self.settings.uri, "catalog_options": dict(self.settings.options)}
        return {**named, "storage_options": dict(self.storage_options)}

    @property
    def storage(self) -> Storage:
        return Storage(str(self.to), self.storage_options)

    @property
    def reader(self) -> Catalog:
        if self.settings.owns_tables:
            return RestCatalog("default", uri=self.settings.uri, **self.settings.options)
        return connect(self.settings, self.storage)

    def check(self, db: Database) -> None:
        """Check that every reader has the server's rows."""
        with psycopg.connect(db.dsn, options="-c TimeZone=UTC") as connection:
            expected = source_rows(connection, "public", "life")
        assert counted(self.reader.load_table("public.life").scan().to_arrow()) == expected
        assert counted(logicalrep.read(self.to, "life", **self.options).arrow()) == expected
        (verdict,) = verify(db.settings, self.storage, catalog=self.settings)
        assert verdict.result == "equal"


@contextmanager
def place_of(name: str, kind: str, folder: Path, failing: float) -> Iterator[Place]:
    """Yield the place of a named catalog whose tables are in folders or in a store."""
    if kind in ("sqlite", "postgresql", "rest", "glue"):
        with pytest.MonkeyPatch.context() as patch, catalog_of(kind, folder, patch) as catalog:
            yield Place(catalog.settings, Path(catalog.storage.uri))
        return
    named = CATALOGS[name]
    if kind == "folder":
        with _serving(name, OwnerServer(Warehouse(str(folder / "warehouse")), named.profile), folder, failing) as place:
            yield place
        return
    with start_object_store() as store:
        server = Vending(store, named.profile).server
        with _serving(name, server, folder, failing, {"aws_allow_http": "true"}) as place:
            yield place


@contextmanager
def _serving(
    name: str, server: OwnerServer, folder: Path, failing: float, storage_options: Mapping[str, str] | None = None
) -> Iterator[Place]:
    options = CATALOGS[name].options(server)
    service = RandomService(server, options, random.Random(name), failing=failing, deletes=True)
    pause = 0.3 if CATALOGS[name].has_service else 1e6
    if not storage_options:
        server.vend = CATALOGS[name].credentials
    with server.running(), service.running(pause):
        yield Place(CatalogSettings(server.uri, options), folder / "lake", storage_options or {}, service)


@pytest.mark.parametrize(
    ("name", "kind", "mode", "version"),
    [
        ("Unity Catalog", "folder", "copy-on-write", 2),
        ("Polaris", "store", "merge-on-read", 2),
        ("S3 Tables", "folder", "merge-on-read", 2),
        ("Horizon", "folder", "merge-on-read", 2),
        ("Glue", "folder", "copy-on-write", 2),
        # Other catalogs have services that merge files by pyiceberg, which writes no manifests of version 3.
        *(
            pytest.param(*place, "merge-on-read", 3, marks=pytest.mark.thorough)
            for place in (("Polaris", "store"), ("", "sqlite"), ("", "postgresql"), ("", "glue"))
        ),
    ],
)
def test_a_table_lives_in_a_catalog(
    name: str, kind: str, mode: WriteMode, version: int, db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{name} {kind} {mode}")
    db18.execute(*SETUP.strip().split(";\n"))
    with place_of(name, kind, tmp_path, 0) as place:

        def run() -> None:
            options = {"format": "iceberg", "format_version": version, "write_mode": mode, **place.options}
            replicate_once(db18, place.to, LIMITS, **options)

        def run_with_kill() -> None:
            with pytest.MonkeyPatch.context() as patch, suppress(Killed):
                Kills(patch).at(chance.randint(1, _LAST_KILL))
                run()

        run_with_kill()
        for statements in STEPS:
            db18.execute(*statements)
            run_with_kill()
        resync(db18.settings, place.storage, ())
        run_with_kill()
        run()
        place.check(db18)


_PLACES = [(name, kind) for name in CATALOGS for kind in ("folder", "store")]
_PLACES += [("", kind) for kind in ("sqlite", "postgresql", "rest", "glue")]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "kind"), _PLACES)
def test_a_table_lives_in_each_catalog_under_killed_commands(
    name: str, kind: str, mode: WriteMode, db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{name} {kind} {mode}")
    db18.execute(*SETUP.strip().split(";\n"))
    with place_of(name, kind, tmp_path, 0.05) as place:
        for option, value in place.settings.options.items():
            # With a secret among its arguments the command would start anew, without the limits of tests.
            monkeypatch.setenv(f"PYICEBERG_CATALOG__DEFAULT__{option.upper().replace('-', '_')}", value)
        options = ["--format", "iceberg", "--write-mode", mode, "--catalog", place.settings.uri]
        for option, value in place.storage_options.items():
            options += ["--storage-option", f"{option}={value}"]
        if "access-delegation" in place.settings.options:
            options += ["--catalog-option", "access-delegation=none"]
        command = Command(db18, place.to, tmp_path / "log", "local", options)

        def kill() -> None:
            if chance.random() < 0.3 and command.is_alive():
                command.kill("")

        if place.service is not None:
            place.service.on_commit = kill
        try:
            for statements in STEPS:
                if not command.is_alive():
                    command.start("--every", "0")
                time.sleep(2 + 4 * chance.random())
                db18.execute(*statements)
                time.sleep(2 * chance.random())
                if chance.random() < 0.5:
                    command.kill("")
        finally:
            command.kill("")
        if place.service is not None:
            place.service.on_commit = lambda: None
        command.once()
        resync(db18.settings, place.storage, [TableName("public", "life")])
        command.once()
        if place.service is not None:
            place.service.stop()
        place.check(db18)
