"""Columns whose texts depend on other objects, or on settings, and change without a change of their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import run_once
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database

NAMES = {
    "aclitem": "'postgres=r/postgres'",
    "regclass": "'pg_class'",
    "regcollation": "'\"C\"'",
    "regconfig": "'simple'",
    "regdictionary": "'simple'",
    "regnamespace": "'public'",
    "regoper": "'||/'",
    "regoperator": "'+(integer,integer)'",
    "regproc": "'now'",
    "regprocedure": "'now()'",
    "regrole": "'postgres'",
    "regtype": "'int'",
    "regclass[]": "'{pg_class}'",
    "names": "'pg_class'",
    "names[]": "'{pg_class}'",
    "pair": "'(1,pg_class)'",
    "pair[]": "'{\"(1,pg_class)\"}'",
    "span": "'[pg_class,pg_class]'",
}
_TYPES = (
    "CREATE DOMAIN names AS regclass",
    "CREATE TYPE pair AS (a int, b names)",
    "CREATE TYPE span AS RANGE (subtype = regclass, subtype_opclass = oid_ops)",
)


def _states(folder: Path) -> dict[str, str]:
    return {name.partition(".")[2]: table.state for name, table in State.read(Storage(str(folder))).tables.items()}


def test_a_table_with_names_of_objects_is_stopped_unless_they_are_not_written(
    db16_and_18: Database, tmp_path: Path
) -> None:
    db, tables = db16_and_18, {f"t{number}": type_ for number, type_ in enumerate(NAMES)}
    db.execute(*_TYPES, "CREATE TABLE oids (id int PRIMARY KEY, v oid)", "INSERT INTO oids VALUES (1, 1259)")
    for table, type_ in {**tables, "without": "regclass", "nulled": "pair"}.items():
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v {type_})")
        db.execute(f"INSERT INTO {table} VALUES (1, {NAMES[type_]})")
    config = read_config(
        {"tables": {"without": {"left_out": ["v"]}, "nulled": {"masked": {"v": "nulled"}}}}, TableSettings()
    )
    with pytest.raises(
        TablesStoppedError, match=r"public\.t1: \[COLUMN_OF_NAMES\] public\.t1\.v has the type regclass"
    ):
        replicate_once(db, tmp_path, config=config)
    following = {"oids", "without", "nulled"}
    assert _states(tmp_path) == dict.fromkeys(tables, "stopped") | dict.fromkeys(following, "following")
    assert read_table(str(tmp_path / "public/without")).to_pylist() == [{"id": 1}]
    assert read_table(str(tmp_path / "public/nulled")).to_pylist() == [{"id": 1, "v": None}]


def test_a_table_that_gets_names_of_objects_is_stopped_until_it_has_none(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE other (id int PRIMARY KEY)")
    replicate_once(db18, tmp_path)
    db18.execute(
        "ALTER TABLE t ADD w regclass", "INSERT INTO t VALUES (1, 'v', 'other')", "INSERT INTO other VALUES (1)"
    )
    with pytest.raises(TablesStoppedError, match=r"COLUMN_OF_NAMES.*t\.w has the type regclass"):
        replicate_once(db18, tmp_path)
    assert _states(tmp_path) == {"t": "stopped", "other": "following"}
    db18.execute("ALTER TABLE t ALTER w TYPE oid")
    resync(db18.settings, Storage(str(tmp_path)), [TableName("public", "t")])
    replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.other", "public.t"]) == {}


def test_a_change_of_lc_monetary_reloads_tables_with_money(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v money)", "INSERT INTO t VALUES (1, 5)")
    db18.execute("CREATE TABLE other (id int PRIMARY KEY)")
    replicate_once(db18, tmp_path)
    db18.execute(f"ALTER DATABASE {db18.name} SET lc_monetary = 'C.UTF-8'")
    assert run_once(db18, tmp_path).names == ["t"]
    assert run_once(db18, tmp_path).names == []
