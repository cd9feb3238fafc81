"""A catalog that owns tables fails, expires tokens and credentials, merges, removes and tags at random: every row is right.

Some seconds in `make test`, and SERVICE minutes for `make soak`, with commands that are killed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyiceberg.catalog.rest import RestCatalog

import logicalrep
from conformance import rows
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_name
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from tests.pipeline.catalog.random_application import TABLES as ALTERED
from tests.pipeline.catalog.random_application import Migrations
from tests.pipeline.command import Command
from tests.pipeline.comparison import counted, source_rows
from tests.pipeline.formats.iceberg.catalogs.named import NamedCatalog
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer, Profile
from tests.pipeline.formats.iceberg.catalogs.random_service import RandomService
from tests.pipeline.formats.iceberg.catalogs.vending import Vending
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.pipeline.storage.stores import start_object_store
from tests.postgres.servers import Database, create_database
from tests.spark import workload
from tests.spark.writer import Writer

pytestmark = [pytest.mark.postgres, pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")]

MINUTES, SEED = float(os.environ.get("SERVICE", "0")), int(os.environ.get("SEED", "1"))
ALL = NamedCatalog(
    Profile(
        stages=False,
        forced={"write.object-storage.enabled": "true"},
        reserved=("delta.", "write.", "history."),
        takes_equality_deletes=False,
        needs_credentials=True,
    ),
    has_tokens=True,
)
"""What the named catalogs do, all at once."""
CHANGED = ["plain", "whole", "by_index", "toasted", 'Odd "Näme']
TABLES = [*CHANGED, "large", *ALTERED]
MARKED = ["plain", "by_index", "large", "t"]
"""The tables that are merge-on-read."""


@dataclass(frozen=True)
class Served:
    """A catalog with its service, and a destination."""

    server: OwnerServer
    service: RandomService
    to: Path
    catalog_options: Mapping[str, str]

    @property
    def options(self) -> dict[str, Any]:
        """The options of a reader."""
        return {
            "catalog": self.server.uri,
            "catalog_options": dict(self.catalog_options),
            "storage_options": {"aws_allow_http": "true"},
        }

    def verdicts(self, db: Database) -> set[str]:
        storage = Storage(str(self.to), self.options["storage_options"])
        catalog = CatalogSettings(self.server.uri, self.catalog_options)
        return {verdict.result for verdict in verify(db.settings, storage, catalog=catalog)}

    def differences(self, db: Database, tables: Sequence[str]) -> dict[str, str]:
        """Return what differs from the server, by table, read through the catalog by pyiceberg and by `read`."""
        catalog, wrong = RestCatalog("default", uri=self.server.uri, **self.catalog_options), {}
        with psycopg.connect(
            db.dsn, options="-c TimeZone=UTC -c extra_float_digits=3 -c synchronize_seqscans=off"
        ) as connection:
            for table in tables:
                expected = source_rows(connection, "public", table)
                copies = {
                    "pyiceberg": catalog.load_table(catalog_name(f"public/{table}")).scan().to_arrow(),
                    "read": logicalrep.read(self.to, str(TableName("public", table)), **self.options).arrow(),
                }
                for reader, rows in copies.items():
                    stored = counted(rows)
                    if stored != expected:
                        missing, surplus = expected - stored, stored - expected
                        wrong[f"{table} by {reader}"] = f"{len(expected)}: lacks {[*missing][:2]}, has {[*surplus][:2]}"
        return wrong


@contextmanager
def serving(folder: Path, seed: int, *, failing: float, pause: float, seconds: float) -> Iterator[Served]:
    with start_object_store() as store:
        vending = Vending(store, ALL.profile, seconds)
        options = ALL.options(vending.server)
        service = RandomService(vending.server, options, random.Random(seed), failing=failing, deletes=True)
        with vending.server.running(), service.running(pause):
            yield Served(vending.server, service, folder / "lake", options)


def test_a_random_service_leaves_every_row_right(db18: Database, tmp_path: Path) -> None:
    limits = Limits(small_file_bytes=1, marked_share=1, loads_at_once=1_000_000)
    with serving(tmp_path, 1, failing=0, pause=0.1, seconds=60) as served:
        prepare(db18, 100)
        options = {**served.options, "format": "iceberg", "write_mode": "merge-on-read"}
        with replicate_meanwhile(db18, served.to, limits=limits, **options) as caught_up:
            caught_up()
            # A catalog that fails at the start ends the command.
            served.service.failing = 0.02
            for seed in range(1, 4):
                rows.run(db18.connection, seed, 5)
                resync(db18.settings, Storage(str(served.to)), [TableName("public", CHANGED[seed])])
                caught_up()
            served.service.stop()
        # replicate loads a table at the next start if the service has removed the proof of its rows.
        replicate_once(db18, served.to, limits, **options)
        assert served.service.counts["merge"] > 0
        assert served.differences(db18, CHANGED) == {}
        assert served.verdicts(db18) == {"equal"}


@pytest.mark.skipif(not MINUTES, reason="SERVICE has the minutes")
def test_a_random_service_leaves_every_row_right_for_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, end = random.Random(SEED), time.monotonic() + 60 * MINUTES
    with create_database(18) as db, serving(tmp_path, SEED, failing=0.03, pause=0.3, seconds=60) as served:
        prepare(db, 20_000)
        config = tmp_path / "config.yaml"
        config.write_text(str({"tables": {f"public.{table}": {"write_mode": "merge-on-read"} for table in MARKED}}))
        options = ["--format", "iceberg", "--catalog", served.server.uri, "--config", str(config)]
        options += ["--storage-option", "aws_allow_http=true"]
        for name, value in served.catalog_options.items():
            # With a secret among its arguments the command would start anew, without the limits of tests.
            monkeypatch.setenv(f"PYICEBERG_CATALOG__DEFAULT__{name.upper().replace('-', '_')}", value)
        command = Command(db, served.to, tmp_path / "log", "local", options)
        migrations, writer = Migrations(db, SEED), Writer(db)
        kills = 0

        def kill() -> None:
            nonlocal kills
            if chance.random() < 0.5 and command.is_alive():
                command.kill("")
                kills += 1

        served.service.on_commit = kill
        try:
            while time.monotonic() < end:
                if not command.is_alive():
                    command.start("--every", "0")
                time.sleep(5 + chance.random() * 20)
                if chance.random() < 0.3 and command.is_alive():
                    command.kill("")
                    kills += 1
                table = TableName("public", chance.choice(TABLES))
                # A table that is not loaded yet is none of the destination.
                with suppress(StateError):
                    resync(ConnectionSettings(db.dsn), Storage(str(served.to)), [table])
        finally:
            writer.stop()
            migrations.stop()
            served.service.on_commit = lambda: None
            command.kill("")
        for (gid,) in db.rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
            db.execute(f"ROLLBACK PREPARED '{gid}'")
        # A catalog that fails at the start ends the command.
        served.service.stop()
        command.once(900)
        print(served.service.counts, f"{kills} kills, {writer.seeds} and {migrations.count} transactions")
        assert served.differences(db, TABLES) == {}, command.log()
        assert served.verdicts(db) == {"equal"}


def prepare(db: Database, rows: int) -> None:
    workload.prepare(db)
    db.execute(
        "DROP PUBLICATION p",
        "ALTER TABLE bare REPLICA IDENTITY NOTHING",
        "CREATE TABLE large (id int PRIMARY KEY, v text)",
        f"INSERT INTO large SELECT i, repeat('x', 500) FROM generate_series(1, {rows}) AS i",
    )
