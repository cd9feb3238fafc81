"""Delta's change data feed of replicated tables equals the net effect of the rows of `~changes`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.pipeline.reading import load_name, read_delta
from tests.pipeline.replicating import replicate_for_warnings, replicate_once
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, MODES, WriteMode
from tests.postgres.servers import Database

SETUP = """
CREATE TABLE t (id int PRIMARY KEY, v text, big text);
ALTER TABLE t REPLICA IDENTITY FULL;
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
INSERT INTO t SELECT i, 'v' || i, repeat('x', 3000 + i) FROM generate_series(1, 20) AS i;
"""
Row = tuple[Any, ...]


def statements(chance: random.Random, columns: list[str]) -> list[str]:
    """Return statements that insert, update, move and delete rows, several times each."""
    key, number = chance.randrange(1, 30), chance.randrange(1000)
    choices = [
        f"INSERT INTO t (id, v) VALUES ({key}, 'new {number}') ON CONFLICT (id) DO UPDATE SET v = 'again {number}'",
        f"UPDATE t SET {chance.choice(columns)} = 'u{number}' WHERE id % 3 = {key % 3}",
        f"UPDATE t SET v = v WHERE id = {key}",
        f"UPDATE t SET id = {100 + number} WHERE id = {key}",
        f"DELETE FROM t WHERE id = {key}",
    ]
    return chance.choices(choices, k=4)


def net_of(changes: list[dict[str, Any]]) -> Counter[Row]:
    """Return the net changes of rows of `~changes`, in the form of a feed."""
    firsts: dict[int, Row | None] = {}
    lasts: dict[int, Row | None] = {}
    for change in sorted(changes, key=lambda change: (change["_commit_version"], change["_ordinal"])):
        kind = change["_change_type"]
        row = tuple(value for name, value in change.items() if not name.startswith("_"))
        is_old = kind in ("update_preimage", "delete")
        firsts.setdefault(change["id"], row if is_old else None)
        lasts[change["id"]] = None if is_old else row
    net: Counter[Row] = Counter()
    for key, first in firsts.items():
        last = lasts[key]
        if first != last:
            is_update = first is not None and last is not None
            net.update([("update_preimage" if is_update else "delete", *first)] if first is not None else [])
            net.update([("update_postimage" if is_update else "insert", *last)] if last is not None else [])
    return net


@pytest.mark.postgres
@pytest.mark.parametrize("mode", MODES)
def test_the_feed_has_the_net_effect_of_the_changes(db18: Database, tmp_path: Path, mode: WriteMode) -> None:
    for statement in SETUP.strip().split(";\n"):
        db18.execute(statement.rstrip(";\n"))
    chance, columns, uri = random.Random(mode), ["v", "big"], f"{tmp_path}/public/t"

    def replicate() -> None:
        replicate_once(
            db18,
            tmp_path,
            MARKS_IN_SMALL_FILES,
            format="delta",
            write_mode=mode,
            append=True,
            change_data_feed=True,
        )

    replicate()
    for number in range(6):
        if number == 3:
            db18.execute("ALTER TABLE t ADD COLUMN added text")
            columns.append("added")
            replicate()
        version = DeltaTable(uri).version()
        previous_changes = read_delta(f"{uri}~changes").num_rows
        for statement in statements(chance, columns):
            db18.execute(statement)
        replicate()
        reader = DeltaTable(uri)
        assert set(reader.protocol().writer_features or ()) >= {"changeDataFeed"}
        feed = pa.table(reader.load_cdf(version + 1, reader.version()).read_all()).to_pylist()
        # A run may have several commits; within a commit the old row is the first.
        for row in feed:
            row["_ordinal"] = row["_change_type"] in ("insert", "update_postimage")
        changes = read_delta(f"{uri}~changes").sort_by([("_commit_version", "ascending"), ("_ordinal", "ascending")])
        assert net_of(feed) == net_of(changes.slice(previous_changes).to_pylist())


@pytest.mark.postgres
def test_the_option_changes_without_a_reload(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO t VALUES (1, 'a')")
    replicate_once(db18, tmp_path, format="delta", history=True)
    load = load_name(tmp_path, "public/t")
    for is_wanted, text in ((True, "begins with the next"), (False, "ends with the last")):
        db18.execute(f"UPDATE t SET v = '{text}'")
        warnings = replicate_for_warnings(db18, tmp_path, format="delta", history=True, change_data_feed=is_wanted)
        assert warnings == [f"public.t: change_data_feed changed: the feed {text} commit"]
        assert load_name(tmp_path, "public/t") == load
        configuration = DeltaTable(f"{tmp_path}/public/t").metadata().configuration
        assert ("delta.enableChangeDataFeed" in configuration) == is_wanted
        assert "delta.enableChangeDataFeed" not in DeltaTable(f"{tmp_path}/public/t~history").metadata().configuration
