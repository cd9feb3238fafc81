"""Settings by table: every mistake in the file, and what tables have by them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.config.databases import read_databases
from logicalrep.pipeline.config.nodes import ConfigError
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.transactions.table_names import TableName
from tests.documents import examples
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

MISTAKES = """\
tables:
  public.orders:
    histroy: true
    deletes: sotf
    append: yes
  orders: {history: 1}
  public.a.b:
    history: true
    history: true
  customer: [x]
  audit:
    append: true
    unrepresentable: text
defaults: {}
"""


def mistakes(source: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        read_config(source, TableSettings())
    assert str(raised.value).startswith("[CONFIG_INVALID] there ")
    return raised.value.description.split("\n")[1:]


def test_every_mistake_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(MISTAKES)
    keys = (
        "unrepresentable, numeric, deletes, history, append, write_mode, change_data_feed, format_version, optional, key, "
        "left_out, partition_by, masked"
    )
    assert [mistake.removeprefix(f"{path}:") for mistake in mistakes(path)] == [
        f"3: public.orders has no setting 'histroy': it has {keys}; did you mean history?",
        "4: 'deletes' of public.orders is 'sotf': it is hard or soft; did you mean soft?",
        "5: 'append' of public.orders must be true or false",
        "6: 'history' of orders must be true or false",
        f"6: public.orders is repeated, first at {path}:2",
        "7: public.a.b has 3 parts; schema.table is expected",
        "9: public.a.b has 'history' twice, first in line 8",
        "10: customer must be a mapping",
        "11: audit: append stores changes unaltered, and unrepresentable = text alters values: remove one of the two",
        "14: the file has no setting 'defaults': it has tables",
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"tables: {a: {history: true}", "shop.yaml:1: is not YAML: expected ',' or '}', but got '<stream end>'"),
        (b"\xff\xfe\xff", "shop.yaml: cannot be read: "),
        (b"- a", "shop.yaml:1: the file must be a mapping"),
        (b"tables: {? [a] : {history: true}}", "shop.yaml:1: a key of 'tables' must be a text"),
        (None, "shop.yaml: cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_file_of_settings(tmp_path: Path, content: bytes | None, text: str) -> None:
    path = tmp_path / "shop.yaml"
    if content is not None:
        path.write_bytes(content)
    (mistake,) = mistakes(path)
    assert text in mistake


def test_a_mapping_is_read_like_a_file() -> None:
    config = read_config({"tables": {'"Odd"': {"history": True}, "t": {}}}, TableSettings(deletes="soft"))
    assert {name: entry.settings for name, entry in config.entries.items()} == {
        TableName("public", "Odd"): TableSettings(deletes="soft", history=True),
        TableName("public", "t"): TableSettings(deletes="soft"),
    }
    assert mistakes({"tables": {"t": {"history": "true", "deletes": None}}}) == [
        "config: 'deletes' of t must be a text",
        "config: 'history' of t must be true or false",
    ]
    assert "YAML cannot express" in mistakes({"tables": object()})[0]
    assert read_config({"tables": None}, TableSettings()).entries == {}


def test_tables_have_their_own_settings_and_one_whose_settings_change_is_reloaded(
    shop: Database, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    tables: dict[str, dict[str, Any]] = {"orders": {"history": True}, "customer": {"deletes": "soft"}}
    tables["later"] = {"optional": True, "append": True}
    replicate_once(shop, lake, config=read_config({"tables": tables}, TableSettings()))
    previous_tables = State.read(Storage(str(lake))).tables
    assert {name: set(table.companions) for name, table in previous_tables.items()} == {
        "public.audit": set(),
        "public.customer": set(),
        "public.orders": {"history"},
    }
    shop.execute(
        "DELETE FROM customer WHERE id = 1",
        "DELETE FROM orders WHERE id = 1",
        "CREATE TABLE later (id int PRIMARY KEY)",
    )
    del tables["orders"]["history"]
    replicate_once(shop, lake, config=read_config({"tables": tables}, TableSettings()))
    after = State.read(Storage(str(lake))).tables
    assert {name: table.rows for name, table in after.items()} == {
        "public.audit": 10,
        "public.customer": 1000,
        "public.later": 0,
        "public.orders": 4999,
    }
    assert set(after["public.later"].companions) == {"changes"}
    assert [name for name in previous_tables if previous_tables[name].load != after[name].load] == ["public.orders"]


def test_a_table_that_is_not_replicated_is_a_mistake(shop: Database, tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text("tables:\n  ordres: {history: true}\n  bare: {}\n  gone: {optional: true}\n")
    command = [sys.executable, "-m", "logicalrep.cli.main", "replicate", "--once", "--to", str(tmp_path / "lake")]
    done = subprocess.run(
        [*command, "--dsn", shop.dsn, "--config", str(path)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 1
    assert done.stderr.split("error: ")[1].splitlines() == [
        "[CONFIG_INVALID] there are 2 mistakes in the settings:",
        f"{path}:2: no table public.ordres is replicated, and it is not optional; did you mean orders?",
        f"{path}:3: no table public.bare is replicated, and it is not optional",
    ]
    assert not list((tmp_path / "lake").rglob("*.parquet"))


def test_a_key_of_its_own(shop: Database, tmp_path: Path) -> None:
    shop.execute("CREATE TABLE full_rows (a int NOT NULL, b text NOT NULL, v int, secret text)")
    config = read_config(
        {"tables": {"full_rows": {"key": ["b", "a"], "left_out": "secret", "deletes": "soft"}}}, TableSettings()
    )
    for statement in (
        "ALTER TABLE full_rows REPLICA IDENTITY FULL",
        "CREATE UNIQUE INDEX of_some ON full_rows (a, b) WHERE a > 0",
        "ALTER TABLE full_rows ADD UNIQUE (b) INCLUDE (a)",
        "ALTER TABLE full_rows ADD CONSTRAINT later UNIQUE (a, b) DEFERRABLE",
    ):
        shop.execute(statement)
        with pytest.raises(ConfigError, match=r"give public\.full_rows the key b, a: it needs REPLICA"):
            replicate_once(shop, tmp_path, config=config)
    shop.execute(
        "CREATE UNIQUE INDEX by_both ON full_rows (a, b)", "INSERT INTO full_rows VALUES (1, 'x', 1), (1, 'y', 1)"
    )
    replicate_once(shop, tmp_path, config=config)
    shop.execute(
        "UPDATE full_rows SET v = 2, b = 'z' WHERE b = 'x'",
        "DELETE FROM full_rows WHERE b = 'y'",
        "INSERT INTO full_rows VALUES (1, 'y', 3)",
    )
    replicate_once(shop, tmp_path, config=config)
    rows = read_table(str(tmp_path / "public/full_rows")).to_pylist()
    # A mark is cleared by a row that comes again only where rows have a key.
    assert sorted((row["b"], row["v"], row["_is_deleted"]) for row in rows) == [
        ("x", 1, True),
        ("y", 3, False),
        ("z", 2, False),
    ]
    assert {verdict.result for verdict in verify(shop.settings, Storage(str(tmp_path)))} == {"equal"}
    with replicate_meanwhile(shop, tmp_path, config=config) as caught_up:
        shop.execute("UPDATE full_rows SET v = 4 WHERE b = 'z'")
        caught_up()
        shop.execute("DROP INDEX by_both")
        eventually(lambda: State.read(Storage(str(tmp_path))).tables["public.full_rows"].state == "stopped")
    assert "[KEY_NOT_UNIQUE]" in str(State.read(Storage(str(tmp_path))).tables["public.full_rows"].error)


def test_the_databases_of_the_page_are_read(tmp_path: Path) -> None:
    (config,) = examples("docs/how-to/many-databases.md", "yaml")
    (tmp_path / "databases.yaml").write_text(config)
    shop, crm = read_databases(tmp_path / "databases.yaml")
    assert (shop.name, shop.to) == ("shop", "s3://lake/shop")
    assert (crm.name, crm.options) == ("crm", {"every": "60", "exclude_tables": "audit.*"})
