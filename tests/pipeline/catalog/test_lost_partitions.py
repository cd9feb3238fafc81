"""Partitions that are dropped or detached: the rows within their bounds alone are replaced."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.companions import ALL_COMPANIONS, companion_differences
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.observed_loads import RowCounter
from tests.pipeline.reading import load_name
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

TABLES = """
CREATE TABLE root (id int, at {type}, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE p1 PARTITION OF root FOR VALUES FROM ('{0}') TO ('{1}');
CREATE TABLE p2 PARTITION OF root FOR VALUES FROM ('{1}') TO ('{2}');
CREATE TABLE p3 PARTITION OF root FOR VALUES FROM ('{2}') TO ('{3}') PARTITION BY HASH (id);
CREATE TABLE p3_0 PARTITION OF p3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p3_1 PARTITION OF p3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE rest PARTITION OF root DEFAULT;
INSERT INTO root SELECT i, (ARRAY['{0}', '{1}', '{2}', '{4}'])[1 + i % 4]::{type}, 'old' FROM generate_series(1, 800) AS i;
CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true)
"""
DAYS = ["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01", "2027-01-01"]
TYPES = {
    "date": DAYS,
    "timestamptz": [f"{day} 00:00:00.000001+00" for day in DAYS],
    "timestamp": DAYS,
    "bigint": ["-5", "0", "5", "10", "99"],
}


def prepare(db: Database, storage: Path, type_: str = "date", **options: Any) -> str:
    db.execute(*TABLES.format(*TYPES[type_], type=type_).strip().split(";\n"))
    replicate_once(db, storage, publication="p", **options)
    return load_name(storage, "public/root")


def run(db: Database, storage: Path, observer: RowCounter | None = None, **options: Any) -> RowCounter:
    observer = observer or RowCounter()
    replicate_with(settings(db, storage, once=True, publication="p", **options), observer, engine=SequentialEngine())
    return observer


LOST = {
    "dropped": ("DROP TABLE p1", 0),
    "detached": ("ALTER TABLE root DETACH PARTITION p1; DELETE FROM p1 WHERE id < 100", 0),
    "two, with others filled": ("DROP TABLE p1; DROP TABLE p2; INSERT INTO root VALUES (9000, '{2}', 'new')", 0),
    "rows in the default partition": (
        "DROP TABLE p1; INSERT INTO root SELECT i, '{0}', 'again' FROM generate_series(4, 40, 4) AS i; "
        "INSERT INTO root VALUES (9000, '{0}', 'new')",
        11,
    ),
    "created again": (
        "DROP TABLE p1; CREATE TABLE p1 PARTITION OF root FOR VALUES FROM ('{0}') TO ('{1}'); "
        "INSERT INTO root SELECT i, '{0}', 'again' FROM generate_series(4, 40, 4) AS i",
        10,
    ),
    "with sub-partitions": ("DROP TABLE p3; INSERT INTO root VALUES (2, '{2}', 'in the default partition')", 1),
    "one hash partition": ("ALTER TABLE p3 DETACH PARTITION p3_1", None),
    "a row that is inserted again and moved": (
        "DROP TABLE p1; INSERT INTO root VALUES (4, '{0}', 'again'); UPDATE root SET at = '2026-02-02' WHERE id = 4",
        0,
    ),
    "a renamed column": ("DROP TABLE p1; ALTER TABLE root RENAME at TO moment", 0),
}


def expect_no_reload(db: Database, storage: Path, load: str, observer: RowCounter, kept: TableSettings) -> None:
    assert companion_differences(db, storage, ["public.root"], kept, counts_versions=False) == {}
    assert load_name(storage, "public/root") == load, observer.lines
    assert {reason.partition(":")[0] for reason, _ in observer.lines} == {"a partition was dropped or detached"}


@pytest.mark.parametrize(
    "kept", [TableSettings(), pytest.param(ALL_COMPANIONS, marks=pytest.mark.thorough)], ids=["rows", "all is kept"]
)
@pytest.mark.parametrize(("statements", "rows"), LOST.values(), ids=LOST)
def test_rows_of_lost_partitions_are_removed_without_a_reload(
    db18: Database, tmp_path: Path, kept: TableSettings, statements: str, rows: int | None
) -> None:
    load = prepare(db18, tmp_path, table_settings=kept)
    db18.execute(*statements.format(*DAYS).split("; "))
    observer = run(db18, tmp_path, table_settings=kept)
    expect_no_reload(db18, tmp_path, load, observer, kept)
    assert rows is None or observer.rows == rows
    assert run(db18, tmp_path, table_settings=kept).names == []


@pytest.mark.parametrize("type_", [pytest.param(type_, marks=pytest.mark.thorough) for type_ in TYPES])
def test_each_type_of_bounds(db18: Database, tmp_path: Path, type_: str) -> None:
    load = prepare(db18, tmp_path, type_)
    db18.execute("DROP TABLE p2")
    observer = run(db18, tmp_path)
    assert observer.rows == 0
    expect_no_reload(db18, tmp_path, load, observer, TableSettings())


def test_changes_around_the_drop_are_all_applied(db18: Database, tmp_path: Path) -> None:
    """Rows of the bounds come before the drop, before the snapshot, under it and after it; and the column is renamed."""
    insert = "INSERT INTO root SELECT i, '2026-01-01', 'new' FROM generate_series({0}, {0} + 9) AS i"
    observer = RowCounter(
        before=lambda: db18.execute(
            insert.format(2000),
            # Rows that the dropped partition had.
            "INSERT INTO root SELECT i, '2026-01-01', 'again' FROM generate_series(4, 40, 4) AS i",
        ),
        meanwhile=lambda: db18.execute(insert.format(3000), "DELETE FROM root WHERE id BETWEEN 2000 AND 2004"),
    )
    load = prepare(db18, tmp_path, table_settings=ALL_COMPANIONS)
    with replicate_meanwhile(db18, tmp_path, observer, publication="p", table_settings=ALL_COMPANIONS) as caught_up:
        db18.execute("UPDATE root SET v = 'the process runs' WHERE id < 100")
        caught_up()
        db18.execute(insert.format(1000), "DELETE FROM root WHERE id = 8")
        # If the server sent these rows after the drop, it would name the partition again, and the table is reloaded.
        caught_up()
        db18.execute("DROP TABLE p1", insert.format(1500))
        eventually(lambda: observer.names != [])
        caught_up()
        db18.execute("ALTER TABLE root RENAME v TO w", insert.format(4000))
        caught_up()
    run(db18, tmp_path, table_settings=ALL_COMPANIONS)
    expect_no_reload(db18, tmp_path, load, observer, ALL_COMPANIONS)


def test_a_table_without_a_key_and_a_list_of_texts(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE root (id int, region text) PARTITION BY LIST (region)",
        "CREATE TABLE eu PARTITION OF root FOR VALUES IN ('de', 'it''s')",
        "CREATE TABLE us PARTITION OF root FOR VALUES IN ('us')",
        "CREATE TABLE rest PARTITION OF root DEFAULT",
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("root", "eu", "us", "rest")),
        "INSERT INTO root SELECT i % 3, (ARRAY['de', 'it''s', 'us', NULL, 'at'])[1 + i % 5] FROM generate_series(1, 100) AS i",
        "CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true)",
    )
    replicate_once(db18, tmp_path, publication="p")
    load = load_name(tmp_path, "public/root")
    db18.execute(
        "DROP TABLE eu", "INSERT INTO root SELECT 1, 'de' FROM generate_series(1, 5)", "DELETE FROM us WHERE id = 1"
    )
    observer = run(db18, tmp_path)
    expect_no_reload(db18, tmp_path, load, observer, TableSettings())
    assert observer.rows == 5


OTHER_BOUNDS = "FOR VALUES FROM ('2028-01-01') TO ('2029-01-01')"
WHOLE = {
    "the default partition": "DELETE FROM rest WHERE id < 50; DROP TABLE rest",
    "attached with other bounds for a while": (
        "ALTER TABLE root DETACH PARTITION p1; TRUNCATE p1; "
        f"ALTER TABLE root ATTACH PARTITION p1 {OTHER_BOUNDS}; INSERT INTO root VALUES (5000, '2028-02-01', 'x'); "
        "DROP TABLE p1"
    ),
    "above, attached with other bounds for a while": (
        "ALTER TABLE root DETACH PARTITION p3; TRUNCATE p3; "
        f"ALTER TABLE root ATTACH PARTITION p3 {OTHER_BOUNDS}; INSERT INTO root VALUES (5000, '2028-02-01', 'x'); "
        "DROP TABLE p3"
    ),
    "attached again": "ALTER TABLE root DETACH PARTITION p1; DELETE FROM p1 WHERE id < 90; "
    "ALTER TABLE root ATTACH PARTITION p1 FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
    "beside one with rows that was attached": (
        "CREATE TABLE p5 (LIKE root INCLUDING ALL); INSERT INTO p5 VALUES (1, '2028-02-01', 'x'); "
        f"ALTER TABLE root ATTACH PARTITION p5 {OTHER_BOUNDS}; DROP TABLE p1"
    ),
}


@pytest.mark.parametrize("statements", WHOLE.values(), ids=WHOLE)
def test_the_table_is_reloaded_if_bounds_do_not_tell_the_rows(db18: Database, tmp_path: Path, statements: str) -> None:
    load = prepare(db18, tmp_path)
    db18.execute(*statements.split("; "))
    run(db18, tmp_path)
    assert companion_differences(db18, tmp_path, ["public.root"], TableSettings()) == {}
    assert load_name(tmp_path, "public/root") != load


def test_a_partition_that_is_being_detached_is_lost_at_once(db18: Database, tmp_path: Path) -> None:
    """DETACH CONCURRENTLY waits for a reader in between; the partition's rows are no longer in the table."""
    load = prepare(db18, tmp_path)
    db18.execute("DROP TABLE rest")
    assert run(db18, tmp_path).rows > 0
    load = load_name(tmp_path, "public/root")
    with closing(db18.writer()) as reader, closing(db18.writer()) as detacher:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM root")
        detacher.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            detacher.execute("ALTER TABLE root DETACH PARTITION p1 CONCURRENTLY")
        observer = run(db18, tmp_path)
        expect_no_reload(db18, tmp_path, load, observer, TableSettings())
    db18.execute("ALTER TABLE root DETACH PARTITION p1 FINALIZE")
    assert run(db18, tmp_path).names == []


@pytest.mark.thorough
def test_kills_at_each_write_remove_the_rows_and_lose_none(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process after another is killed at its first write, then at its second, and so on; rows change meanwhile."""
    load = prepare(db18, tmp_path, table_settings=TableSettings(deletes="soft"))
    db18.execute("DROP TABLE p1")

    def change(number: int) -> None:
        db18.execute(
            f"INSERT INTO root SELECT {number} * 1000 + i, '2026-01-01', 'new' FROM generate_series(1, 20) AS i",
            f"DELETE FROM root WHERE id = {number} * 1000 - 990",
            f"UPDATE root SET v = 'changed {number}' WHERE id % 50 = 1",
        )

    observers = []
    with monkeypatch.context() as patch:
        kills = Kills(patch)
        for write in count(1):
            kills.at(write)
            if write % 3 == 0:
                change(write)
            observers.append(RowCounter(meanwhile=partial(change, write + 100)))
            try:
                run(db18, tmp_path, observers[-1], table_settings=TableSettings(deletes="soft"))
                break
            except Killed:
                continue
    assert sum("root" in observer.names for observer in observers) > 3
    run(db18, tmp_path, table_settings=TableSettings(deletes="soft"))
    assert (
        companion_differences(db18, tmp_path, ["public.root"], TableSettings(deletes="soft"), counts_versions=False)
        == {}
    )
    assert load_name(tmp_path, "public/root") == load
