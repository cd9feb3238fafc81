"""The comments of tables and columns, and the key, are in the tables' metadata, for catalogs and readers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database


def comments(folder: Path) -> tuple[str | None, dict[str, str]]:
    """Return the comment of a table and the comments of its columns."""
    reader = DeltaTable(folder)
    fields = json.loads(reader.schema().to_json())["fields"]
    column_comments = {field["name"]: field["metadata"]["comment"] for field in fields if field["metadata"]}
    return reader.metadata().description, column_comments


def data_files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.parquet")}


@pytest.mark.parametrize("history", [False, True])
def test_comments_are_followed_without_writing_data(db16_and_18: Database, tmp_path: Path, history: bool) -> None:
    db = db16_and_18
    db.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, secret text, plain int)",
        "COMMENT ON TABLE t IS 'all \"orders\"\nof the shop'",
        "COMMENT ON COLUMN t.v IS 'größer'",
        "COMMENT ON COLUMN t.secret IS 'never written'",
        "INSERT INTO t VALUES (1, 'a', 'b', 2)",
    )
    config = {"tables": {"t": {"left_out": ["secret"]}}}
    folders = [tmp_path / "public/t", *([tmp_path / "public/t~history"] if history else [])]
    replicate_once(db, tmp_path, history=history, config=config)
    for folder in folders:
        assert comments(folder) == ('all "orders"\nof the shop', {"v": "größer"})
        assert DeltaTable(folder).metadata().configuration["logicalrep.key"] == '["id"]'
        assert "never written" not in "".join(path.read_text() for path in folder.glob("_delta_log/*.json"))

    files = {folder: data_files(folder) for folder in folders}
    db.execute(
        "COMMENT ON TABLE t IS NULL", "COMMENT ON COLUMN t.v IS 'other'", "COMMENT ON COLUMN t.plain IS 'a number'"
    )
    replicate_once(db, tmp_path, history=history, config=config)
    assert {folder: data_files(folder) for folder in folders} == files
    for folder in folders:
        assert comments(folder) == (None, {"v": "other", "plain": "a number"})
    # Nothing is committed where nothing changed.
    version = DeltaTable(folders[0]).version()
    replicate_once(db, tmp_path, history=history, config=config)
    assert DeltaTable(folders[0]).version() == version


def test_a_renamed_column_has_its_comment_and_its_place_in_the_key(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (b, a))",
        "COMMENT ON COLUMN t.a IS 'first'",
        "COMMENT ON COLUMN t.v IS 'value'",
        "INSERT INTO t VALUES (1, 1, 'x')",
        "CREATE TABLE bare (v int)",
        "ALTER TABLE bare REPLICA IDENTITY FULL",
    )
    replicate_once(db18, tmp_path)
    db18.execute("ALTER TABLE t RENAME a TO c", "ALTER TABLE t DROP v", "INSERT INTO t VALUES (2, 2)")
    replicate_once(db18, tmp_path)
    assert comments(tmp_path / "public/t") == (None, {"c": "first"})
    assert DeltaTable(tmp_path / "public/t").metadata().configuration["logicalrep.key"] == '["b", "c"]'
    assert "logicalrep.key" not in DeltaTable(tmp_path / "public/bare").metadata().configuration
