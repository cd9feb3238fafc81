"""Observers of loads, and runs that return them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from logicalrep.observe.events import CopyStarted, LoadsNeeded, RowsCopied, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import settings
from tests.postgres.servers import Database


class CopyNames(Observer):
    """A report of the tables that are loaded."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyStarted(table):
                self.names.append(table.name)


def split_statements(text: str, table: str) -> list[str]:
    parts = text.replace("\\;", "\0").split(";")
    return [part.replace("\0", ";").replace("{t}", table).strip() for part in parts]


class LoadObserver(CopyNames):
    """A report that also keeps the lines on loads that are needed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, list[str]]] = []

    def on_event(self, event: RunEvent) -> None:
        super().on_event(event)
        match event:
            case LoadsNeeded(tables, reason):
                self.lines.append((reason, sorted(table.name for table in tables)))


def run_once(db: Database, storage: Path, **options: Any) -> LoadObserver:
    observer = LoadObserver()
    replicate_with(settings(db, storage, once=True, **options), observer, engine=SequentialEngine())
    return observer


def read_ids(storage: Path, table: str) -> list[int]:
    return sorted(read_table(str(storage / "public" / table))["id"].to_pylist())


def create_two_tables(db: Database) -> None:
    db.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    db.execute("CREATE PUBLICATION p FOR TABLE a, b")


class RowCounter(LoadObserver):
    """A report of the loads and the rows that are copied; something may be done before and under a snapshot."""

    def __init__(self, **actions: Callable[[], None]) -> None:
        super().__init__()
        self.rows = 0
        self._actions = actions

    def _act(self, name: str) -> None:
        self._actions.pop(name, lambda: None)()

    def on_event(self, event: RunEvent) -> None:
        super().on_event(event)
        match event:
            case LoadsNeeded():
                self._act("before")
            case CopyStarted():
                self._act("meanwhile")
            case RowsCopied(_, rows):
                self.rows += rows


class LoadReasons(Observer):
    """Keeps why tables were loaded."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case LoadsNeeded(_, reason):
                self.reasons.append(reason)


def stored_load(storage: Path) -> str | None:
    return State.read(Storage(str(storage))).tables["public.t"].load
