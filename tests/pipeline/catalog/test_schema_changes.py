"""What the stream does not say: after each statement nothing else happens, and the copy is right all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from logicalrep.observe.events import CopyStarted, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.catalog.publishing import Published, ensure_publication
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.reading import read_properties, read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

TABLES = """
CREATE TABLE plain (id int PRIMARY KEY, v bigint, w text);
INSERT INTO plain SELECT i, i, 'w' || i FROM generate_series(1, 50) AS i;
CREATE TABLE root (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE day1 PARTITION OF root FOR VALUES FROM (1) TO (2);
CREATE TABLE day2 PARTITION OF root FOR VALUES FROM (2) TO (3);
CREATE TABLE day3 (v text, day int NOT NULL, id int NOT NULL, PRIMARY KEY (id, day));
INSERT INTO root SELECT i, 1 + i % 2, 'v' FROM generate_series(1, 40) AS i;
INSERT INTO day3 SELECT 'three', 3, i FROM generate_series(1, 7) AS i;
ALTER TABLE day3 REPLICA IDENTITY FULL;
"""
COPIES = ["public.plain", "public.root"]

STATEMENTS = {
    "a rewrite that changes every value": "ALTER TABLE plain ALTER COLUMN v TYPE bigint USING v * 10",
    "a column with a volatile default": "ALTER TABLE plain ADD COLUMN chance float8 DEFAULT random()",
    "another type": "ALTER TABLE plain ALTER COLUMN id TYPE bigint",
    "a new table of the name": "DROP TABLE plain; CREATE TABLE plain (id int PRIMARY KEY); INSERT INTO plain VALUES (1)",
    "a truncate": "TRUNCATE plain",
    "a truncate and new rows": "TRUNCATE plain; INSERT INTO plain VALUES (1, 1, 'one')",
    "a truncate, and values written anew": (
        "TRUNCATE plain; INSERT INTO plain VALUES (1, 1, 'one'); ALTER TABLE plain ALTER COLUMN v TYPE bigint USING v * 10"
    ),
    "a vacuum that writes it anew": "VACUUM FULL plain",
    "a truncated partition": "TRUNCATE day1",
    "a dropped partition": "DROP TABLE day1",
    "a detached partition": "ALTER TABLE root DETACH PARTITION day1",
    "an attached partition with rows": "ALTER TABLE root ATTACH PARTITION day3 FOR VALUES FROM (3) TO (4)",
    "a new partition": "CREATE TABLE day4 PARTITION OF root FOR VALUES FROM (4) TO (5); INSERT INTO root VALUES (1, 4, 'x')",
    "a partition made, filled and attached at once": (
        "BEGIN; CREATE TABLE day4 (LIKE root INCLUDING ALL); INSERT INTO day4 VALUES (1, 4, 'x'); "
        "ALTER TABLE root ATTACH PARTITION day4 FOR VALUES FROM (4) TO (5); COMMIT"
    ),
    "a new partition that is filled and truncated": (
        "CREATE TABLE day4 PARTITION OF root FOR VALUES FROM (4) TO (5); INSERT INTO root VALUES (1, 4, 'x'); "
        "TRUNCATE day4; INSERT INTO root VALUES (2, 4, 'y')"
    ),
    "a new partition, and a truncate of all": (
        "CREATE TABLE day4 PARTITION OF root FOR VALUES FROM (4) TO (5); INSERT INTO root VALUES (1, 4, 'x'); "
        "TRUNCATE root; INSERT INTO root VALUES (2, 4, 'y')"
    ),
    "a row that moves between partitions": "UPDATE root SET day = 2 WHERE id = 2",
    "a renamed table": "ALTER TABLE plain RENAME TO later; ALTER TABLE later RENAME TO plain",
}


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
def test_nothing_else_happens_afterwards(db18: Database, tmp_path: Path, statement: str) -> None:
    for each in TABLES.strip().split(";\n"):
        db18.execute(each.rstrip(";\n"))
    # The tables that become partitions are not published by themselves.
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication="p")
    assert find_differences(db18.dsn, str(tmp_path), COPIES) == {}
    for each in statement.split("; "):
        db18.execute(each)
    if "DROP TABLE plain" in statement:
        db18.execute("ALTER PUBLICATION p ADD TABLE plain")
    replicate_once(db18, tmp_path, publication="p")
    assert find_differences(db18.dsn, str(tmp_path), COPIES) == {}


TYPED = """
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE DOMAIN feeling AS mood;
CREATE TYPE moods AS RANGE (subtype = mood);
CREATE TYPE pair AS (a int, b text);
CREATE TABLE typed (id int PRIMARY KEY, m mood, f feeling, r moods, p pair);
INSERT INTO typed SELECT i, 'low', 'low', '[low,low]', (i, 'b')::pair FROM generate_series(1, 50) AS i
"""
TYPES = {
    "a renamed label": ("ALTER TYPE mood RENAME VALUE 'low' TO 'lower'", 1),
    "a renamed label of a new column": (
        "ALTER TABLE typed ADD more mood2 DEFAULT 'one'; INSERT INTO typed (id) VALUES (99); "
        "ALTER TYPE mood2 RENAME VALUE 'one' TO 'eins'",
        1,
    ),
    "a new label": ("ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high'", 0),
    "a new label, and rows of it": (
        "ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high'; UPDATE typed SET m = 'middle' WHERE id % 2 = 0",
        0,
    ),
    "a new column of the type": (
        "ALTER TABLE typed ADD more mood2 DEFAULT 'one'; INSERT INTO typed (id) VALUES (99)",
        0,
    ),
    "a new attribute": ("ALTER TYPE pair ADD ATTRIBUTE c text", 1),
    "a dropped attribute": ("ALTER TYPE pair DROP ATTRIBUTE a", 1),
    "a renamed attribute": ("ALTER TYPE pair RENAME ATTRIBUTE a TO first", 0),
    "an attribute that comes, is written, and goes": (
        "ALTER TYPE pair ADD ATTRIBUTE c text; UPDATE typed SET p.a = 7 WHERE id < 9; ALTER TYPE pair DROP ATTRIBUTE c",
        1,
    ),
    "renamed types": ("ALTER TYPE mood RENAME TO spirit; ALTER TYPE pair RENAME TO couple", 0),
    "a domain with a constraint": ("ALTER DOMAIN feeling ADD CONSTRAINT low CHECK (value < 'high')", 0),
}


@pytest.mark.parametrize(
    ("statements", "loads"),
    [
        pytest.param(*case, id=name, marks=() if name in ("a renamed label", "a new label") else pytest.mark.thorough)
        for name, case in TYPES.items()
    ],
)
def test_a_type_changes_and_no_row_does(db18: Database, tmp_path: Path, statements: str, loads: int) -> None:
    """The texts of rows change on the server, which sends nothing, and keeps the table's file."""
    for each in TYPED.strip().split(";\n"):
        db18.execute(each)
    db18.execute("CREATE TYPE mood2 AS ENUM ('one', 'two')")
    observer = Loads()
    replicate_with(settings(db18, tmp_path, once=True), observer, engine=SequentialEngine())
    for each in statements.split("; "):
        db18.execute(each)
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
def test_another_publication_of_a_table_loads_it_again(db18: Database, tmp_path: Path, statements: str) -> None:
    for each in TABLES.strip().split(";\n"):
        db18.execute(each.rstrip(";\n"))
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication="p")
    for each in statements.split("; "):
        db18.execute(each)
    replicate_once(db18, tmp_path, publication="p")
    columns = "id, v" if "(id, v)" in statements else "*"
    expected = Counter(db18.rows(f"SELECT {columns} FROM plain WHERE v > {40 if 'WHERE' in statements else 0}"))
    assert delta_rows(f"{tmp_path}/public/plain") == expected


def load_of(storage: Path, table: str) -> str:
    """Return the name of the load that a table's rows began with."""
    return read_properties(str(storage / table))["logicalrep.load"]


FOLLOWED = {
    "a column": "ALTER TABLE plain ADD COLUMN more text",
    "a column with a default": "ALTER TABLE plain ADD COLUMN more timestamp DEFAULT now()",
    "an array with a default": "ALTER TABLE plain ADD COLUMN more int[] DEFAULT '{1,2}'",
    "a column with a default without rows": "ALTER TABLE plain ADD COLUMN more numeric(10,2) DEFAULT 1.5 NOT NULL",
    "a dropped column": "ALTER TABLE plain DROP COLUMN w",
    "a dropped column and another of its name": (
        "ALTER TABLE plain DROP COLUMN w; {rows}; ALTER TABLE plain ADD COLUMN w text"
    ),
    "a renamed column": "ALTER TABLE plain RENAME COLUMN w TO renamed",
    "a renamed key": "ALTER TABLE plain RENAME COLUMN id TO number",
    "several at once": (
        "ALTER TABLE plain ADD COLUMN a int DEFAULT 7; {rows}; ALTER TABLE plain ADD COLUMN b text; {rows}; "
        "ALTER TABLE plain DROP COLUMN w"
    ),
    "a longer number": "ALTER TABLE plain ALTER COLUMN n TYPE numeric(12,2)",
    "a number without a bound": (
        "UPDATE plain SET n = id / 8.0; ALTER TABLE plain ADD COLUMN small numeric(12,8) DEFAULT 0.00000001; {rows}; "
        "ALTER TABLE plain ALTER COLUMN n TYPE numeric, ALTER COLUMN small TYPE numeric"
    ),
    "a text without a bound": "ALTER TABLE plain ALTER COLUMN c TYPE text",
    "a column that may not be null": "ALTER TABLE plain ALTER COLUMN v SET NOT NULL",
    "another key": "ALTER TABLE plain DROP CONSTRAINT plain_pkey, ADD PRIMARY KEY (w)",
    "all columns as the replica identity": "ALTER TABLE plain REPLICA IDENTITY FULL",
    "a column of a partitioned table": "ALTER TABLE root ADD COLUMN more text DEFAULT 'old'",
    "a renamed column of a partitioned table": "ALTER TABLE root RENAME COLUMN v TO renamed",
}
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


KEPT = TableSettings(deletes="soft", history=True, append=True)
TEXTS = TableSettings(unrepresentable="text", history=True)
SETTINGS = {"": TableSettings(), "all is kept": KEPT, "texts beside": TEXTS}


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
        # Texts beside numbers, such as NaN, have no column any more.
        if (name, kept) != ("a number without a bound", "texts beside")
    ],
)
def test_columns_and_keys_are_followed_without_a_load(
    db18: Database, tmp_path: Path, statements: str, with_rows: bool, kept: TableSettings
) -> None:
    for each in TABLES.strip().split(";\n"):
        db18.execute(each.rstrip(";\n"))
    db18.execute("CREATE SEQUENCE ids START 100")
    db18.execute("ALTER TABLE plain ALTER id SET DEFAULT nextval('ids'), ALTER v SET DEFAULT 1")
    db18.execute("ALTER TABLE plain ALTER w SET DEFAULT 'new' || currval('ids'), ADD n numeric(10,2), ADD c varchar(9)")
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication="p", table_settings=kept)
    before = {copy: load_of(tmp_path, copy.replace(".", "/")) for copy in COPIES}
    rows = ROWS if with_rows else "SELECT 1"
    for each in f"{rows}; {statements.replace('{rows}', rows)}; {rows}".split("; "):
        db18.execute(each)
    replicate_once(db18, tmp_path, publication="p", table_settings=kept)
    assert kept_differences(db18, tmp_path, COPIES, kept) == {}
    assert {copy: load_of(tmp_path, copy.replace(".", "/")) for copy in COPIES} == before


def kept_differences(
    db: Database, storage: Path, copies: list[str], kept: TableSettings, *, counts_versions: bool = True
) -> dict[str, str]:
    """Return how the rows that are there now differ, also the versions of now, and the number of versions.

    The number is that of the changes as long as there is no other load.
    """
    are_all = pc.scalar(True)
    there_now = pc.field("_deleted") == pc.scalar(False) if kept.deletes == "soft" else are_all
    found = find_differences(db.dsn, str(storage), copies, there_now=there_now)
    if kept.history:
        found |= find_differences(db.dsn, str(storage), copies, companion="~history", there_now=pc.field("_is_current"))
    for copy in copies if kept.append and counts_versions else ():
        loaded = pc.field("_valid_from_ordinal") >= 0
        uri = str(storage / copy.replace(".", "/"))
        versions = read_table(f"{uri}~history")
        changes = Counter(read_table(f"{uri}~changes")["_change_type"].to_pylist())
        begun, ended = versions.filter(loaded).num_rows, versions.filter(~pc.field("_is_current")).num_rows
        expected = changes["insert"] + changes["update_postimage"], changes["delete"] + changes["update_postimage"]
        if (begun, ended) != expected:
            found[copy] = f"{begun} versions have begun and {ended} ended, and not {expected}"
    return found


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
            db18.execute(*(each for each in part.strip("; ").split("; ") if each))
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
    assert kept_differences(db18, tmp_path, tables, kept) == {}
    assert loading.loads == 0


def test_a_table_that_is_renamed_during_a_look_is_followed(
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
    assert kept_differences(db18, tmp_path, ["public.later"], TableSettings()) == {}
    assert loading.loads == 0


class Loads(Observer):
    """A report that counts loads."""

    loads = 0

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyStarted():
                self.loads += 1
