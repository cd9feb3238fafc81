"""Delta's change data feed of replicated tables equals the net effect of the rows of `~changes`."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.pipeline.kills import Killed, Kills
from tests.pipeline.reading import load_name, read_delta
from tests.pipeline.replicating import replicate_for_warnings, replicate_once
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, MODES, WriteMode
from tests.postgres.servers import Database

SETUP = """
CREATE TABLE t (id int PRIMARY KEY, region text, v text, big text);
ALTER TABLE t REPLICA IDENTITY FULL;
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
INSERT INTO t SELECT i, 'r' || i % 3, 'v' || i, repeat('x', 3000 + i) FROM generate_series(1, 20) AS i;
"""
Row = tuple[Any, ...]


def statements(chance: random.Random, columns: list[str]) -> list[str]:
    """Return statements that insert, update, move and delete rows, several times each."""
    key, number = chance.randrange(1, 30), chance.randrange(1000)
    choices = [
        f"INSERT INTO t (id, v) VALUES ({key}, 'new {number}') ON CONFLICT (id) DO UPDATE SET v = 'again {number}'",
        f"UPDATE t SET {chance.choice(columns)} = 'u{number}' WHERE id % 3 = {key % 3}",
        f"UPDATE t SET v = v WHERE id = {key}",
        f"UPDATE t SET region = 'r{number % 3}' WHERE id % 4 = {key % 4}",
        f"UPDATE t SET id = {100 + number} WHERE id = {key} AND NOT EXISTS (SELECT FROM t WHERE id = {100 + number})",
        f"DELETE FROM t WHERE id = {key}",
    ]
    return chance.choices(choices, k=4)


def _order(change: dict[str, Any]) -> tuple[int, int, bool]:
    # In one commit of a feed, the old row of a key comes before the new row.
    is_new = change["_change_type"] in ("insert", "update_postimage")
    return change["_commit_version"], change.get("_ordinal", is_new), is_new


def net_of(changes: list[dict[str, Any]]) -> Counter[Row]:
    """Return the net changes of rows of `~changes`, in the form of a feed."""
    firsts: dict[int, Row | None] = {}
    lasts: dict[int, Row | None] = {}
    for change in sorted(changes, key=_order):
        kind = change["_change_type"]
        # A reader has columns of partitions at the end.
        row: Row | None = tuple(change[name] for name in sorted(change) if not name.startswith("_"))
        is_old = kind in ("update_preimage", "delete")
        if change.get("_is_deleted"):
            # Readers of the current rows leave a marked row out.
            row = None
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


PARTITIONS = ((), ("region",), ("bucket(2, id)", "region"))
_LAST_KILL = 12
"""The write up to which a kill comes: a run has more."""


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("mode", "deletes", "partition_by"),
    [
        ("copy-on-write", "soft", ("region",)),
        ("merge-on-read", "hard", ("bucket(2, id)", "region")),
        *(
            pytest.param(*options, marks=pytest.mark.thorough)
            for options in product(MODES, ("hard", "soft"), PARTITIONS)
        ),
    ],
)
def test_the_feed_has_the_net_effect_of_the_changes_after_kills(
    db18: Database, tmp_path: Path, mode: WriteMode, deletes: str, partition_by: tuple[str, ...]
) -> None:
    for statement in SETUP.strip().split(";\n"):
        db18.execute(statement.rstrip(";\n"))
    chance, columns, uri = random.Random(f"{mode} {deletes} {partition_by}"), ["v", "big"], f"{tmp_path}/public/t"

    def replicate() -> None:
        replicate_once(
            db18,
            tmp_path,
            MARKS_IN_SMALL_FILES,
            format="delta",
            write_mode=mode,
            append=True,
            deletes=deletes,
            change_data_feed=True,
            config={"tables": {"t": {"partition_by": [*partition_by]}}},
        )

    replicate()
    load = load_name(tmp_path, "public/t")
    for number in range(6):
        if number == 3:
            db18.execute("ALTER TABLE t ADD COLUMN added text")
            columns.append("added")
            replicate()
        version = DeltaTable(uri).version()
        previous_changes = read_delta(f"{uri}~changes").num_rows
        for statement in statements(chance, columns):
            db18.execute(statement)
        if number % 2:
            with pytest.MonkeyPatch.context() as patch:
                Kills(patch).at(chance.randint(1, _LAST_KILL))
                with pytest.raises(Killed):
                    replicate()
            for statement in statements(chance, columns):
                db18.execute(statement)
        replicate()
        reader = DeltaTable(uri)
        assert set(reader.protocol().writer_features or ()) >= {"changeDataFeed"}
        assert len(reader.metadata().partition_columns) == len(partition_by)
        feed = pa.table(reader.load_cdf(version + 1, reader.version()).read_all()).to_pylist()
        changes = read_delta(f"{uri}~changes").sort_by("_commit_version")
        assert net_of(feed) == net_of(changes.slice(previous_changes).to_pylist())
    # The feed is the whole evidence only if no load came between.
    assert load_name(tmp_path, "public/t") == load


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
