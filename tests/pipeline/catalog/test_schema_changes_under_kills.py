"""Each kind of schema change in the middle of a load, and of applying, with kills at one write after another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.events import CopyStarted, RunEvent
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State, States
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from tests.pipeline.catalog.schema_changes import FOLLOWED, SETTINGS, STATEMENTS, TABLES, TYPED, TYPES
from tests.pipeline.companions import companion_differences
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.replicating import replicate_once, settings
from tests.postgres.servers import Database

LIMITS = Limits(loads_at_once=1_000_000)
"""Tables are loaded as often as a test changes them."""

ROWS = """
INSERT INTO {plain} DEFAULT VALUES; UPDATE {plain} SET v = v + 1 WHERE v % 2 = 0; DELETE FROM {plain} WHERE v % 7 = 0;
INSERT INTO root VALUES ((SELECT max(id) + 1 FROM root), 2); DELETE FROM root WHERE id % 7 = 0;
INSERT INTO typed (id, m) SELECT max(id) + 1, 'high' FROM typed; UPDATE typed SET m = 'high' WHERE id % 5 = 0;
DELETE FROM typed WHERE id % 11 = 0
"""
KINDS = {
    **FOLLOWED,
    **STATEMENTS,
    **{name: statements for name, (statements, _) in TYPES.items()},
    "a new table of the name": (
        "DROP TABLE plain; CREATE TABLE plain (id int PRIMARY KEY DEFAULT nextval('ids'), v bigint DEFAULT 1); "
        "INSERT INTO plain DEFAULT VALUES; ALTER PUBLICATION p ADD TABLE plain"
    ),
    "out of the publication and in again": (
        "ALTER PUBLICATION p DROP TABLE plain; {rows}; ALTER PUBLICATION p ADD TABLE plain"
    ),
    "a renamed table": "ALTER TABLE plain RENAME TO later",
    "a table in another schema": "CREATE SCHEMA more; ALTER TABLE plain SET SCHEMA more",
}
OFTEN = {
    ("a column with a default", "a load", True),
    ("another key", "applying", True),
    ("a renamed label", "applying", False),
}
"""Those that `make test` has; `make test-all` has all."""


class Loading(Observer):
    """Does something once, when all of some tables are being loaded."""

    def __init__(self, tables: set[str], action: Callable[[], None]) -> None:
        self._tables = tables
        self._action = action

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyStarted(table):
                self._tables.discard(table.name)
                if not self._tables:
                    self._action()


def cases() -> list[Any]:
    parameters = []
    for number, (name, statements) in enumerate(KINDS.items()):
        for moment in ("a load", "applying"):
            for with_rows in (False, True):
                kept = list(SETTINGS)[(number + (moment == "a load") + with_rows) % len(SETTINGS)]
                rows = "rows before and after" if with_rows else ""
                parameters.append(
                    pytest.param(
                        statements, moment, with_rows, SETTINGS[kept],
                        id=", ".join(filter(None, [name, f"during {moment}", rows, kept])),
                        marks=() if (name, moment, with_rows) in OFTEN else pytest.mark.thorough,
                    )
                )  # fmt: skip
    return parameters


@pytest.mark.parametrize(("statements", "moment", "with_rows", "kept"), cases())
def test_schema_changes_at_each_kill_end_with_equal_rows(
    db18: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statements: str,
    moment: str,
    with_rows: bool,
    kept: Any,
) -> None:
    prepare(db18)
    plain = db18.value("SELECT 'plain'::regclass::oid")
    options = {"publication": "p", "table_settings": kept, "once": True}
    remaining = [statements]

    def changed() -> None:
        plain_name = db18.value(
            f"SELECT coalesce((SELECT oid::regclass::text FROM pg_class WHERE oid = {plain}), 'plain')"
        )
        run(db18, ROWS.format(plain=plain_name))

    lock = threading.Lock()

    def altered() -> None:
        with lock:
            if not remaining:
                return
            parts = remaining.pop().split("{rows}")
            for part in parts:
                if with_rows:
                    changed()
                run(db18, part)
            if with_rows:
                changed()

    observer = Loading({"plain", "root", "typed"}, altered) if moment == "a load" else Observers()
    if moment == "applying":
        replicate_once(db18, tmp_path, limits=LIMITS, publication="p", table_settings=kept)
        changed()
    with monkeypatch.context() as patch:
        kills = Kills(patch)
        if moment == "applying":
            kills.before_commit = altered
        for write in accumulate(count(1)):
            kills.at(write)
            try:
                replicate_with(settings(db18, tmp_path, **options), observer, engine=SequentialEngine(), limits=LIMITS)
                break
            except Killed:
                continue
    assert not remaining
    assert write > 3
    tables = [f"{schema}.{name}" for schema, name in db18.rows(
        "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = 'p'"
    )]  # fmt: skip
    assert companion_differences(db18, tmp_path, tables, kept, counts_versions=False) == {}
    verdicts = list(verify(ConnectionSettings(db18.dsn), Storage(str(tmp_path))))
    assert {
        str(verdict.table): verdict.result for verdict in verdicts if str(verdict.table) in tables
    } == dict.fromkeys(tables, "equal")


def test_a_renamed_table_keeps_its_rows_beside_a_new_table_of_its_old_name(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill the old checkpoint has the renamed table in the folder where the new one is."""
    for name in ("v", "w"):
        db18.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)")
    db18.execute("CREATE PUBLICATION p FOR TABLE v, w")
    replicate_once(db18, tmp_path, limits=LIMITS, publication="p")
    db18.execute(
        "DROP TABLE w", "ALTER TABLE v RENAME TO w", "CREATE TABLE v (id int PRIMARY KEY)",
        "ALTER PUBLICATION p ADD TABLE v", "INSERT INTO v VALUES (2)", "INSERT INTO w VALUES (3)",
    )  # fmt: skip
    write, renamed = States.write, db18.value("SELECT 'w'::regclass::oid")

    def killed(states: States, state: State) -> None:
        if state.tables["public.w"].oid == renamed:
            raise Killed
        write(states, state)

    with monkeypatch.context() as patch:
        patch.setattr(States, "write", killed)
        with pytest.raises(Killed):
            replicate_once(db18, tmp_path, limits=LIMITS, publication="p")
    db18.execute("INSERT INTO v VALUES (4)", "INSERT INTO w VALUES (5)")
    replicate_once(db18, tmp_path, limits=LIMITS, publication="p")
    assert companion_differences(db18, tmp_path, ["public.v", "public.w"], TableSettings()) == {}


def prepare(db: Database) -> None:
    for statement in f"{TABLES.strip()}\n{TYPED.strip()}".split(";\n"):
        db.execute(statement.rstrip(";\n"))
    db.execute(
        "CREATE TYPE mood2 AS ENUM ('one', 'two')",
        "CREATE SEQUENCE ids START 100",
        "ALTER TABLE plain ALTER id SET DEFAULT nextval('ids'), ALTER v SET DEFAULT 1, ALTER w SET DEFAULT 'new' || "
        "nextval('ids'), ADD n numeric(10,2), ADD c varchar(9)",
        "CREATE PUBLICATION p FOR TABLE plain, root, typed WITH (publish_via_partition_root = true)",
    )


def run(db: Database, statements: str) -> None:
    for statement in statements.split(";"):
        if statement.strip():
            db.execute(statement.strip())
