"""What the stream does not say: after each statement nothing else happens, and the copy is right all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.events import CopyStarted, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.catalog.publishing import Published, ensure_publication
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.catalog.schema_changes import FOLLOWED, SETTINGS, STATEMENTS, TABLES, TYPED, TYPES
from tests.pipeline.companions import companion_differences
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.reading import load_name
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

COPIES = ["public.plain", "public.root"]


OFTEN = {
    "a rewrite that changes every value",
    "a truncate, and values written anew",
    "a new table of the name",
    "a truncate and new rows",
    "a truncated partition",
    "a dropped partition",
    "an attached partition with rows",
    "a new partition",
    "a new partition that is filled and truncated",
}
"""Those that `make test` has; `make test-all` has all."""


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(statement, id=name, marks=() if name in OFTEN else pytest.mark.thorough)
        for name, statement in STATEMENTS.items()
    ],
)
def test_a_schema_change_without_later_changes_ends_with_equal_rows(
    db18: Database, tmp_path: Path, statement: str
) -> None:
    for command in TABLES.strip().split(";\n"):
        db18.execute(command.rstrip(";\n"))
    # The tables that become partitions are not published by themselves.
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication="p")
    assert find_differences(db18.dsn, str(tmp_path), COPIES) == {}
    for command in statement.split("; "):
        db18.execute(command)
    if "DROP TABLE plain" in statement:
        db18.execute("ALTER PUBLICATION p ADD TABLE plain")
    replicate_once(db18, tmp_path, publication="p")
    assert find_differences(db18.dsn, str(tmp_path), COPIES) == {}


@pytest.mark.parametrize(
    ("statements", "loads"),
    [
        pytest.param(*case, id=name, marks=() if name in ("a renamed label", "a new label") else pytest.mark.thorough)
        for name, case in TYPES.items()
    ],
)
def test_a_changed_enum_or_composite_type_reloads_the_table_if_its_texts_change(
    db18: Database, tmp_path: Path, statements: str, loads: int
) -> None:
    """The texts of rows change on the server, which sends nothing, and keeps the table's file."""
    for statement in TYPED.strip().split(";\n"):
        db18.execute(statement)
    db18.execute("CREATE TYPE mood2 AS ENUM ('one', 'two')")
    observer = Loads()
    replicate_with(settings(db18, tmp_path, once=True), observer, engine=SequentialEngine())
    for statement in statements.split("; "):
        db18.execute(statement)
    replicate_with(settings(db18, tmp_path, once=True), observer, engine=SequentialEngine())
    assert find_differences(db18.dsn, str(tmp_path), ["public.typed"]) == {}
    assert observer.loads == 1 + loads


LATER = {
    "another row filter": "ALTER PUBLICATION p SET TABLE plain WHERE (v > 40), root",
    "fewer columns": "ALTER PUBLICATION p SET TABLE plain (id, v), root",
    "out of the publication and in again": (
        "ALTER PUBLICATION p DROP TABLE plain; UPDATE plain SET v = v + 1; ALTER PUBLICATION p ADD TABLE plain"
    ),
    "with its schema, after a while out of it": (
        "ALTER PUBLICATION p DROP TABLE plain; UPDATE plain SET v = v + 1; "
        "ALTER PUBLICATION p ADD TABLES IN SCHEMA public"
    ),
}


@pytest.mark.parametrize("statements", LATER.values(), ids=LATER)
def test_another_publication_of_a_table_reloads_it(db18: Database, tmp_path: Path, statements: str) -> None:
    for statement in TABLES.strip().split(";\n"):
        db18.execute(statement.rstrip(";\n"))
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication="p")
    for statement in statements.split("; "):
        db18.execute(statement)
    replicate_once(db18, tmp_path, publication="p")
    columns = "id, v" if "(id, v)" in statements else "*"
    expected = Counter(db18.rows(f"SELECT {columns} FROM plain WHERE v > {40 if 'WHERE' in statements else 0}"))
    assert delta_rows(f"{tmp_path}/public/plain") == expected


FOLLOWED_OFTEN = {
    "a column with a default": "all is kept",
    "a dropped column and another of its name": "all is kept",
    "a renamed key": "texts beside",
    "a number without a bound": "all is kept",
    "several at once": "",
    "another key": "all is kept",
    "a column of a partitioned table": "",
}
"""Those that `make test` has, with rows before and after; `make test-all` has all, without such rows too."""
ROWS = (
    "INSERT INTO plain DEFAULT VALUES; UPDATE plain SET v = v + 1 WHERE v % 2 = 0; DELETE FROM plain WHERE v % 7 = 0; "
    "INSERT INTO root VALUES ((SELECT max(id) + 1 FROM root), 1); DELETE FROM root WHERE id % 7 = 0"
)


@pytest.mark.parametrize(
    ("statements", "with_rows", "kept"),
    [
        pytest.param(
            statements,
            with_rows,
            SETTINGS[kept],
            id=", ".join(filter(None, [name, "rows before and after" if with_rows else "", kept])),
            marks=() if with_rows and FOLLOWED_OFTEN.get(name) == kept else pytest.mark.thorough,
        )
        for name, statements in FOLLOWED.items()
        for with_rows in (False, True)
        for kept in SETTINGS
        # Texts beside numbers, such as NaN, no longer have a column.
        if (name, kept) != ("a number without a bound", "texts beside")
    ],
)
def test_columns_and_keys_are_followed_without_a_load(
    db18: Database, tmp_path: Path, statements: str, with_rows: bool, kept: TableSettings
) -> None:
    for statement in TABLES.strip().split(";\n"):
        db18.execute(statement.rstrip(";\n"))
    db18.execute("CREATE SEQUENCE ids START 100")
    db18.execute("ALTER TABLE plain ALTER id SET DEFAULT nextval('ids'), ALTER v SET DEFAULT 1")
    db18.execute("ALTER TABLE plain ALTER w SET DEFAULT 'new' || currval('ids'), ADD n numeric(10,2), ADD c varchar(9)")
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication="p", table_settings=kept)
    loads = {copy: load_name(tmp_path, copy.replace(".", "/")) for copy in COPIES}
    rows = ROWS if with_rows else "SELECT 1"
    for statement in f"{rows}; {statements.replace('{rows}', rows)}; {rows}".split("; "):
        db18.execute(statement)
    replicate_once(db18, tmp_path, publication="p", table_settings=kept)
    assert companion_differences(db18, tmp_path, COPIES, kept) == {}
    assert {copy: load_name(tmp_path, copy.replace(".", "/")) for copy in COPIES} == loads


RENAMED = {
    "a table": "ALTER TABLE plain RENAME TO later",
    "a schema": "ALTER SCHEMA shop RENAME TO store",
    "to another schema": "CREATE SCHEMA more; ALTER TABLE plain SET SCHEMA more",
    "two that change names": (
        "ALTER TABLE plain RENAME TO later; ALTER TABLE other RENAME TO plain; ALTER TABLE later RENAME TO other"
    ),
    "there and back": "ALTER TABLE plain RENAME TO later; {}; ALTER TABLE later RENAME TO plain",
    "to the name of one that is gone": "DROP TABLE other; {}; ALTER TABLE plain RENAME TO other",
}


@pytest.mark.parametrize(
    ("statements", "is_running", "kept"),
    [
        pytest.param(
            statements,
            is_running,
            SETTINGS[kept],
            id=", ".join(filter(None, [name, f"while it {'runs' if is_running else 'is down'}", kept])),
            marks=() if name == "two that change names" and bool(kept) != is_running else pytest.mark.thorough,
        )
        for name, statements in RENAMED.items()
        for is_running in (False, True)
        for kept in ("", "all is kept")
    ],
)
def test_a_renamed_table_is_followed_under_its_new_name(
    db18: Database, tmp_path: Path, statements: str, is_running: bool, kept: TableSettings
) -> None:
    db18.execute(
        "CREATE SCHEMA shop",
        *(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)" for name in ("plain", "other", "shop.orders")),
        *(f"INSERT INTO {name} SELECT i, '{name}' || i FROM generate_series(1, 50) AS i"
          for name in ("plain", "other", "shop.orders")),
        "CREATE PUBLICATION p FOR TABLE plain, other, shop.orders",
    )  # fmt: skip
    options = {"publication": "p", "table_settings": kept}
    replicate_once(db18, tmp_path, **options)
    loading = Loads()

    def changed() -> None:
        for (oid,) in db18.rows("SELECT prrelid FROM pg_publication_rel"):
            table = db18.value(f"SELECT {oid}::regclass::text")
            db18.execute(f"UPDATE {table} SET v = v || 'x' WHERE id % 5 = 0", f"DELETE FROM {table} WHERE id % 7 = 0")

    def run() -> None:
        for part in statements.split("{}"):
            changed()
            db18.execute(*(statement for statement in part.strip("; ").split("; ") if statement))
            changed()
            if is_running:
                caught_up()

    if is_running:
        with replicate_meanwhile(db18, tmp_path, loading, **options) as caught_up:
            caught_up()
            run()
    else:
        run()
    replicate_with(settings(db18, tmp_path, once=True, **options), loading, engine=SequentialEngine())
    tables = [f"{schema}.{name}" for schema, name in db18.rows(
        "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = 'p'"
    )]  # fmt: skip
    assert companion_differences(db18, tmp_path, tables, kept) == {}
    assert loading.loads == 0


def test_a_table_that_is_renamed_during_a_refresh_is_followed(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db18.execute(
        "CREATE TABLE plain (id int PRIMARY KEY)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO plain VALUES (1)",
        "CREATE PUBLICATION p FOR TABLE plain, other",
    )
    replicate_once(db18, tmp_path, publication="p")
    loading = Loads()
    statements: list[str] = []

    def ensured(*arguments: Any, **named: Any) -> Published:
        published = ensure_publication(*arguments, **named)
        while statements:
            db18.execute(statements.pop())
        return published

    monkeypatch.setattr("logicalrep.pipeline.catalog.catalog.ensure_publication", ensured)
    with replicate_meanwhile(db18, tmp_path, loading, publication="p") as caught_up:
        caught_up()
        statements.append("ALTER TABLE plain RENAME TO later")
        eventually(lambda: not statements)
        db18.execute("INSERT INTO later VALUES (2)")
        caught_up()
    replicate_with(settings(db18, tmp_path, once=True, publication="p"), loading, engine=SequentialEngine())
    assert companion_differences(db18, tmp_path, ["public.later"], TableSettings()) == {}
    assert loading.loads == 0


class Loads(Observer):
    """A report that counts loads."""

    loads = 0

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyStarted():
                self.loads += 1
