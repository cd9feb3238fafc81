"""Runs of replicate in this process: once, or beside a test."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from logicalrep.observe.events import RunEvent, WarningIssued, WarningSolved
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.config.settings import ReplicateSettings, shared_options
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.postgres.servers import Database
from tests.waiting import eventually

SHOP = """
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, price numeric(10,2), placed timestamptz, note text);
CREATE TABLE audit (at timestamp, what text);
ALTER TABLE audit REPLICA IDENTITY FULL;
CREATE TABLE bare (v int);
INSERT INTO customer SELECT i, 'name ' || i, NULL FROM generate_series(1, 1000) AS i;
INSERT INTO orders SELECT i, i % 1000, i / 7.0, now(), repeat('x', i % 50) FROM generate_series(1, 5000) AS i;
INSERT INTO audit SELECT '2020-01-01', 'same' FROM generate_series(1, 10);
"""

TABLES = ["public.customer", "public.orders", "public.audit"]

FORMATS = {"delta": ("delta", 2), "iceberg": ("iceberg", 2), "iceberg3": ("iceberg", 3)}
"""The formats and their versions by the names that FORMAT can have."""
FORMAT, FORMAT_VERSION = FORMATS[os.environ.get("FORMAT", "delta")]
"""The format of tables whose test names none, and the version."""

CATALOG = os.environ.get("CATALOG", "")
"""`sqlite` if Iceberg tables in a folder are in a catalog too, a file beside it; `owner` for catalogs of the search."""


def settings(
    db: Database, storage: Path | str, *, table_settings: TableSettings | None = None, **options: Any
) -> ReplicateSettings:
    shared = {} if table_settings is None else shared_options(table_settings)
    version = {} if "format" in options else {"format": FORMAT, "format_version": FORMAT_VERSION}
    options = {**shared, **version, **options}
    if CATALOG == "sqlite" and options["format"] == "iceberg" and "://" not in str(storage):
        options = {"catalog": f"sqlite:///{Path(storage).absolute()}.catalog.db", **options}
    return ReplicateSettings(db.dsn, str(storage), **options)


def replicate_once(db: Database, storage: Path | str, limits: Limits | None = None, **options: Any) -> None:
    replicate_with(settings(db, storage, once=True, **options), Observers(), engine=SequentialEngine(), limits=limits)


@contextmanager
def replicate_meanwhile(
    db: Database,
    storage: Path | str,
    observer: Observer | None = None,
    look_again: float = 0.5,
    limits: Limits | None = None,
    **options: Any,
) -> Iterator[Callable[..., None]]:
    """Replicate in a thread; the function waits until all that had committed before is in the tables.

    The catalog is looked at every `look_again` seconds.
    """
    stop, errors = threading.Event(), []
    # `caught_up` waits for a checkpoint, also if nothing but positions has changed.
    limits_of_run = replace(limits or Limits(), checkpoint_seconds=0.1, catalog_seconds=min(look_again, 5.0))

    def run() -> None:
        try:
            replicate_with(
                settings(db, storage, every=0.0, **options),
                observer or Observers(),
                engine=SequentialEngine(),
                stop=stop,
                limits=limits_of_run,
            )
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)

    def caught_up(seconds: float = 300, tables: Collection[str] = ()) -> None:
        """Wait until all commits so far are applied; `tables` are replicated then, also if they were created anew."""
        from logicalrep.pipeline.state.state import State

        oids = {name: db.value(f"SELECT '{name}'::regclass::oid") for name in tables}

        target = Lsn(str(db.value("SELECT pg_current_wal_insert_lsn()")))

        def is_caught_up() -> bool:
            assert not errors, errors
            state = State.read(Storage(str(storage), options.get("storage_options", {})))
            are_current = oids.items() <= {name: table.oid for name, table in state.tables.items()}.items()
            are_following = all(table.state == "following" for table in state.tables.values())
            return state.lsn >= target and are_current and are_following

        eventually(is_caught_up, seconds=seconds)

    thread.start()
    try:
        yield caught_up
    finally:
        stop.set()
        thread.join(300)
        assert not errors, errors
        assert not thread.is_alive()


class Warnings(Observer):
    """Records the texts of warnings, and of solved warnings."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.solved: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case WarningIssued(text):
                self.texts.append(text)
            case WarningSolved(text):
                self.solved.append(text)


def replicate_for_warnings(db: Database, storage: Path, limits: Limits | None = None, **options: Any) -> list[str]:
    """Replicate until the tables have every commit; return the texts of warnings."""
    observer = Warnings()
    replicate_with(settings(db, storage, once=True, **options), observer, engine=SequentialEngine(), limits=limits)
    return observer.texts
