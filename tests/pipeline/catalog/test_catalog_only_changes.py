"""Statements that write a table's rows of the catalog, or give it another file, and change no value of its rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.companions import companion_differences
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import run_once
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database, connect_writer

MADE = (
    "CREATE TABLE t (id serial PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v * 2) STORED)",
    "INSERT INTO t (v) SELECT i FROM generate_series(1, 50) AS i",
    "CREATE TABLE bare (id int PRIMARY KEY)",
)
UNCHANGED = {
    "a default": "ALTER TABLE t ALTER v SET DEFAULT 7",
    "an index": "CREATE INDEX ON t (v)",
    "a constraint": "ALTER TABLE t ADD CONSTRAINT few CHECK (v < 1000)",
    "a foreign key": "ALTER TABLE bare ADD t int REFERENCES t",
    "statistics": "ALTER TABLE t ALTER v SET STATISTICS 500; CREATE STATISTICS s ON id, v FROM t; ANALYZE t",
    "a grant": "GRANT SELECT (v) ON t TO PUBLIC",
    "a comment": "COMMENT ON COLUMN t.v IS 'a number'",
    "another storage": "ALTER TABLE t ALTER v SET (n_distinct = 50); ALTER TABLE t SET (fillfactor = 50)",
    "VACUUM FULL": "VACUUM FULL t",
    "CLUSTER": "CLUSTER t USING t_pkey",
    "SET TABLESPACE": "ALTER TABLE t SET TABLESPACE {space}",
    "there and back in the catalog": "ALTER TABLE t RENAME v TO w; ALTER TABLE t RENAME w TO v",
}
ROWS = ("UPDATE t SET v = v + 1 WHERE id % 3 = 0", "INSERT INTO t (v) VALUES (5)", "DELETE FROM t WHERE id % 7 = 0")


@pytest.mark.parametrize("has_rows", [False, True], ids=["without rows", "with rows before and after"])
def test_changes_of_the_catalog_alone_need_no_load(db16_and_18: Database, tmp_path: Path, has_rows: bool) -> None:
    db, space = db16_and_18, f"space_of_{db16_and_18.name}"
    db.execute("SET allow_in_place_tablespaces = on", f"CREATE TABLESPACE {space} LOCATION ''")
    try:
        db.execute(*MADE, "CREATE PUBLICATION p FOR TABLE t (id, v), bare")
        replicate_once(db, tmp_path, publication="p")
        for statements in UNCHANGED.values():
            if has_rows:
                db.execute(*ROWS)
            db.execute(*statements.format(space=space).split("; "))
            if has_rows:
                db.execute(*ROWS)
            assert run_once(db, tmp_path, publication="p").names == []
        # The generated column is not published.
        db.execute("ALTER TABLE t DROP g")
        assert run_once(db, tmp_path, publication="p").names == []
        assert companion_differences(db, tmp_path, ["public.t"], TableSettings()) == {}
    finally:
        db.execute("ALTER TABLE t SET TABLESPACE pg_default", f"DROP TABLESPACE {space}")


def test_a_new_expression_of_a_generated_column_reloads_the_table(db18: Database, tmp_path: Path) -> None:
    db18.execute(*MADE, "CREATE PUBLICATION p FOR TABLE t WITH (publish_generated_columns = stored)")
    replicate_once(db18, tmp_path, publication="p")
    db18.execute("ALTER TABLE t ALTER g SET EXPRESSION AS (v * 3)")
    assert run_once(db18, tmp_path, publication="p").names == ["t"]
    assert companion_differences(db18, tmp_path, ["public.t"], TableSettings()) == {}


_FULL = (
    "CREATE TABLE n (id int NOT NULL, k int NOT NULL, CONSTRAINT n_key PRIMARY KEY (id))",
    "ALTER TABLE n REPLICA IDENTITY FULL",
    "INSERT INTO n VALUES (1, 1), (2, 1), (3, 1)",
)
"""A table with all columns as the replica identity: the server does not send which of them are the key."""


@pytest.mark.parametrize(
    ("identity", "kept", "is_early"),
    [
        ("FULL", {}, False),
        ("FULL", {}, True),
        ("FULL", {"masked": {"v": "nulled"}}, True),
        ("DEFAULT", {}, True),
        ("DEFAULT", {"masked": {"v": "nulled"}}, True),
    ],
)
def test_a_key_that_changed_and_changed_back_reloads_the_table(
    db18: Database, tmp_path: Path, identity: str, kept: dict[str, Any], is_early: bool
) -> None:
    """The key is put back by a transaction with a number from after the rows, or from before them."""
    config = read_config({"tables": {"n": kept}}, TableSettings())
    db18.execute(*_FULL, f"ALTER TABLE n REPLICA IDENTITY {identity}, ADD v text")
    replicate_once(db18, tmp_path, config=config)
    with closing(connect_writer(db18.dsn)) as early:
        early.execute("BEGIN")
        if is_early:
            early.execute("SELECT txid_current()")
        db18.execute(
            "ALTER TABLE n DROP CONSTRAINT n_key, ADD CONSTRAINT n_key PRIMARY KEY (k, id)",
            "INSERT INTO n VALUES (2, 104)",
            "DELETE FROM n WHERE id = 2 AND k = 1",
        )
        early.execute("ALTER TABLE n DROP CONSTRAINT n_key, ADD CONSTRAINT n_key PRIMARY KEY (id)")
        early.execute("COMMIT")
    assert run_once(db18, tmp_path, config=config).names == ["n"]
    assert find_differences(db18.dsn, str(tmp_path), ["public.n"]) == {}


@pytest.mark.parametrize("allowed", ["DROP INDEX by_k", "ALTER TABLE n ALTER k DROP NOT NULL"])
def test_a_key_of_the_settings_that_allowed_duplicates_or_nulls_reloads_the_table(
    db18: Database, tmp_path: Path, allowed: str
) -> None:
    index = "CREATE UNIQUE INDEX by_k ON n (k)"
    db18.execute(*_FULL, "UPDATE n SET k = id", index)
    config = read_config({"tables": {"n": {"key": "k"}}}, TableSettings())
    replicate_once(db18, tmp_path, config=config)
    db18.execute("UPDATE n SET k = 4 WHERE id = 3")
    assert run_once(db18, tmp_path, config=config).names == []
    db18.execute(
        allowed,
        f"UPDATE n SET k = {'NULL' if 'NULL' in allowed else 1} WHERE id IN (1, 2)",
        "DELETE FROM n WHERE id = 1",
        "UPDATE n SET k = 2 WHERE id = 2",
        index if "DROP INDEX" in allowed else "ALTER TABLE n ALTER k SET NOT NULL",
    )
    assert run_once(db18, tmp_path, config=config).names == ["n"]
    assert find_differences(db18.dsn, str(tmp_path), ["public.n"]) == {}


def test_another_index_of_the_same_key_is_followed(db16_and_18: Database, tmp_path: Path) -> None:
    db = db16_and_18
    db.execute(*_FULL)
    replicate_once(db, tmp_path)
    for statement in (
        "REINDEX TABLE CONCURRENTLY n",
        "ALTER TABLE n RENAME CONSTRAINT n_key TO other",
        "ALTER TABLE n CLUSTER ON other",
        "ALTER TABLE n ALTER id SET STATISTICS 500",
        "ALTER TABLE n RENAME id TO number",
    ):
        db.execute("UPDATE n SET k = k + 1", statement, "UPDATE n SET k = k + 1")
        assert run_once(db, tmp_path).names == [], statement
        assert find_differences(db.dsn, str(tmp_path), ["public.n"]) == {}
