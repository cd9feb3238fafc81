"""A destination whose files, folders and random sets of both are restored to an earlier state, or deleted."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.events import LoadsNeeded, RunEvent, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.requests import request_skip
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.phases import Copy
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import settings
from tests.postgres.servers import Database
from tests.waiting import eventually

TABLES = ("t", "whole", "dated")
SETUP = (
    "CREATE TABLE t (id int PRIMARY KEY, v text)",
    "CREATE TABLE whole (id int, v text)",
    "ALTER TABLE whole REPLICA IDENTITY FULL",
    "CREATE TABLE dated (id int PRIMARY KEY, v text, at date)",
)
CONFIG = {"tables": {"t": {"history": True, "append": True}, "dated": {"unrepresentable": "error"}}}


class Killed(BaseException):
    """The end of a process at a moment that a test chooses."""


class Impatient(Observer):
    """Ends a run that says that it waits for something, and has the reasons of loads."""

    def __init__(self) -> None:
        self.stop, self.waited_for, self.reasons = threading.Event(), list[str](), list[str]()

    def on_event(self, event: RunEvent) -> None:
        match event:
            case LoadsNeeded(_, reason):
                self.reasons.append(reason)
            case WaitReported(text):
                self.waited_for.append(text)
                threading.Timer(3, self.stop.set).start()


@dataclass
class Destination:
    """A destination of a server whose slot is put back for each case, with what happens to both."""

    db: Database
    folder: Path
    chance: random.Random
    options: dict[str, Any]
    log: list[str] = field(default_factory=list)
    """What happened, for the message of a failure."""
    next_id: int = 1

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def storage(self) -> Storage:
        return Storage(str(self.lake))

    def replicate(self, limits: Limits | None = None) -> str | None:
        """Replicate once; return the code of the error with which that ended, or None."""
        wanted, observer = settings(self.db, self.lake, once=True, config=CONFIG, **self.options), Impatient()
        try:
            replicate_with(wanted, observer, engine=SequentialEngine(), stop=observer.stop, limits=limits)
        except LogicalRepError as error:
            self.log.append(f"{error.code}: {error}")
            return error.code
        self.log += [*observer.reasons, *observer.waited_for]
        return "WAITS" if observer.stop.is_set() else None

    def change_rows(self) -> None:
        """Change rows of all tables."""
        for table in TABLES:
            more = ", '2026-01-01'" if table == "dated" else ""
            ids = range(self.next_id, self.next_id + self.chance.randrange(1, 9))
            self.db.execute(f"INSERT INTO {table} VALUES " + ", ".join(f"({id_}, 'n'{more})" for id_ in ids))
            if self.chance.random() < 0.7:
                self.db.execute(f"UPDATE {table} SET v = v || 'u' WHERE id % 5 = {self.chance.randrange(5)}")
            if self.chance.random() < 0.3:
                self.db.execute(f"DELETE FROM {table} WHERE id % 11 = {self.chance.randrange(11)}")
        self.next_id += 10

    def step(self, kind: str | None = None) -> None:
        """Let something happen, by default at random, and replicate it."""
        self.change_rows()
        kind = kind or self.chance.choice(["rows", "rows", "rows", "resync", "column", "refuse", "skip", "kill"])
        self.log.append(kind)
        if kind == "resync":
            resync(self.db.settings, self.storage, [TableName("public", self.chance.choice(TABLES))])
        elif kind == "column":
            self.db.execute(f"ALTER TABLE t ADD COLUMN c{self.next_id} int DEFAULT {self.next_id}")
        elif kind == "refuse":
            self.db.execute(f"INSERT INTO dated VALUES ({self.next_id}, 'n', 'infinity')")
            self.next_id += 1
        elif kind == "skip":
            refused = State.read(self.storage).tables["public.dated"].refused
            if refused is not None:
                request_skip(self.storage, TableName("public", "dated"), Lsn(refused))
                self.db.execute("DELETE FROM dated WHERE at = 'infinity'")
        elif kind == "kill":
            self._kill_in_load()
            return
        self.replicate()

    def _kill_in_load(self) -> None:
        """End a process that has committed copied rows, and buffered later changes that the slot has passed."""
        name = TableName("public", "t")
        resync(self.db.settings, self.storage, [name])
        replace_rows, buffer = TableWriter.replace, self.lake / "_logicalrep/buffered/public/t"

        def replace_and_end(writer: TableWriter, table: Any, *arguments: Any) -> Copy:
            if table.name == name:
                self.change_rows()
                target = Lsn(str(self.db.value("SELECT pg_current_wal_insert_lsn()")))
                eventually(lambda: State.read(self.storage).lsn >= target and any(buffer.glob("*.parquet")), seconds=60)
            copy = replace_rows(writer, table, *arguments)
            if table.name == name:
                raise Killed
            return copy

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TableWriter, "replace", replace_and_end)
            try:
                self.replicate(Limits(checkpoint_seconds=0.1))
            except Killed:
                self.log.append("killed")

    # Copies

    def copy(self, name: str) -> None:
        """Copy the destination, the catalog's file included."""
        shutil.copytree(self.folder / "lake", self.folder / name / "lake")
        if self._catalog.exists():
            shutil.copy(self._catalog, self.folder / name)

    @property
    def _catalog(self) -> Path:
        return self.folder / "catalog.db"

    def put_back(self, name: str) -> None:
        """Make the destination what it was at a copy, and the slot what `save_slot` saved."""
        shutil.rmtree(self.lake)
        shutil.copytree(self.folder / name / "lake", self.lake)
        if self._catalog.exists():
            shutil.copy(self.folder / name / "catalog.db", self._catalog)
        slot = self._slot()
        if self.db.value(f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{slot}'"):
            self.db.execute(f"SELECT pg_drop_replication_slot('{slot}')")
        self.db.execute(f"SELECT pg_copy_logical_replication_slot('{slot}_saved', '{slot}')")

    def _slot(self) -> str:
        slot: str = json.loads((self.folder / "later/lake/_logicalrep/destination.json").read_text())["slot"]
        return slot

    def save_slot(self) -> None:
        """Save the slot's position, for `put_back`."""
        self.db.execute(f"SELECT pg_copy_logical_replication_slot('{self._slot()}', '{self._slot()}_saved')")

    def paths(self) -> list[str]:
        """Return the paths of all files and folders at both times."""
        files = {
            path.relative_to(root).as_posix()
            for root in (self.folder / "before/lake", self.folder / "later/lake")
            for path in root.rglob("*")
        }
        return sorted(files) + (["catalog.db"] if self._catalog.exists() else [])

    def restore(self, path: str, *, is_deleted: bool) -> None:
        """Restore a file or a folder to what it was before, or delete it."""
        self.log.append(f"{'deleted' if is_deleted else 'restored'} {path}")
        is_catalog = path == "catalog.db"
        if is_catalog and is_deleted:
            return
        target = self._catalog if is_catalog else self.lake / path
        source = self.folder / "before" / (path if is_catalog else f"lake/{path}")
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        if is_deleted or not source.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)

    # Verdicts

    def check(self) -> None:
        """Replicate, and prove that no table is silently wrong."""
        # Loads of earlier cases do not count.
        for counts in self.lake.glob("_logicalrep/reloads/**/*.json"):
            counts.unlink()
        code = self.replicate()
        if code is not None and code != TablesStoppedError.code:
            return
        tables = State.read(self.storage).tables
        # They are stopped, or their next load waits.
        behind = {name for name, table in tables.items() if table.error is not None}
        assert bool(behind) == (code is not None), self.log
        following = [f"public.{table}" for table in TABLES if f"public.{table}" not in behind]
        self._delete_unnamed_metadata()
        for table in following:
            try:
                different = find_differences(self.db.dsn, str(self.lake), [table])
            except Exception as error:
                # Readers say that a file is missing.
                if "part-" not in str(error) and "deletes-" not in str(error):
                    raise AssertionError(self.log) from error
                continue
            assert different == {}, self.log

    def _delete_unnamed_metadata(self) -> None:
        """Delete metadata that the catalog does not name: the comparison takes the highest number of a folder."""
        if not self._catalog.exists():
            return
        with closing(sqlite3.connect(self._catalog)) as catalog:
            for (location,) in catalog.execute("SELECT metadata_location FROM iceberg_tables").fetchall():
                named = Path(location.removeprefix("file://"))
                for path in named.parent.glob("*.metadata.json"):
                    if path != named:
                        path.unlink()


def cases(destination: Destination, count: int) -> Iterator[list[tuple[str, bool]]]:
    """Yield what is restored, or deleted, together: single files, folders, and random sets of both."""
    paths, chance = destination.paths(), destination.chance
    for number in range(count):
        size = 1 if number % 3 else chance.randrange(2, 8)
        if number % 2:
            folders = [path for path in paths if (destination.folder / "later/lake" / path).is_dir()]
            of_state = [path for path in paths if path.startswith("_logicalrep/")]
            chosen = chance.choice([folders, of_state])
        else:
            chosen = paths
        yield [(path, chance.random() < 0.5) for path in chance.sample(chosen, min(size, len(chosen)))]
