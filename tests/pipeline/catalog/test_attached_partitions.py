"""Partitions that come to a table with rows: these alone are read, and put in among the rows that the table has."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import PartitionsLoad
from logicalrep.pipeline.catalog.catalog import Catalog, ServerTable
from logicalrep.pipeline.catalog.proof import with_partitions_of
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from tests.pipeline.companions import ALL_COMPANIONS, companion_differences
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.observed_loads import RowCounter
from tests.pipeline.reading import load_name, read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database

COPIES = ["public.root"]
TABLES = """
CREATE SEQUENCE ids START 10000;
CREATE TABLE root (id int, day int, v text, big text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE day1 PARTITION OF root FOR VALUES FROM (1) TO (2);
CREATE TABLE day2 PARTITION OF root FOR VALUES FROM (2) TO (3);
CREATE TABLE day3 (LIKE root INCLUDING ALL);
ALTER TABLE day3 ALTER big SET STORAGE EXTERNAL;
INSERT INTO root SELECT i, 1 + i % 2, 'old', 'b' FROM generate_series(1, 2000) AS i;
INSERT INTO day3 SELECT i, 3, 'three', repeat('long', 1000) FROM generate_series(1, 50) AS i;
CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true)
"""
ATTACH = "ALTER TABLE root ATTACH PARTITION day3 FOR VALUES FROM (3) TO (4)"
CHANGES = (
    # Rows that were there before: gone, changed, with a value that is not sent, with another key, and moved away.
    "DELETE FROM root WHERE day = 3 AND id % 10 = {0} % 10",
    "UPDATE root SET v = 'changed{0}' WHERE day = 3 AND id % 10 = 5",
    "UPDATE root SET id = nextval('ids') WHERE day = 3 AND id % 10 = 6",
    "UPDATE root SET day = 2, id = nextval('ids') WHERE day = 3 AND id % 10 = 7",
    # Rows that come from others, are new, are changed and gone again.
    "UPDATE root SET day = 3, id = nextval('ids') WHERE day = 1 AND id % 100 = {0}",
    "INSERT INTO root SELECT nextval('ids'), 3, 'new', 'b' FROM generate_series(1, 9) AS i",
    "UPDATE root SET v = 'again', id = nextval('ids') WHERE v = 'new' AND id % 4 = 0",
    "DELETE FROM root WHERE v = 'new' AND id % 5 = 0",
    # A row that is deleted, and comes again under its key.
    "DELETE FROM root WHERE day = 3 AND id = 18",
    "INSERT INTO root VALUES (18, 3, 'once more {0}', 'b')",
    # Rows of other partitions.
    "UPDATE root SET v = 'other{0}' WHERE day < 3 AND id % 50 = 0",
    "DELETE FROM root WHERE day < 3 AND id % 90 = {0}",
)


def prepare(db: Database, storage: Path, **options: Any) -> str:
    """Load the table, and return the name of its load."""
    db.execute(*TABLES.strip().split(";\n"))
    replicate_once(db, storage, publication="p", **options)
    return load_name(storage, "public/root")


def change(db: Database, number: int) -> None:
    db.execute(*(statement.format(number) for statement in CHANGES))


def expect_only_partitions_were_read(storage: Path, observer: RowCounter, load: str) -> None:
    assert [reason for reason, _ in observer.lines] == ["a partition with rows was attached"]
    assert observer.names == ["root"]
    assert 0 < observer.rows <= 200
    assert load_name(storage, "public/root") == load
    assert ChangeBuffer(Storage(str(storage))).pending_loads() == {}


def see_partitions_late(monkeypatch: pytest.MonkeyPatch, storage: Path) -> None:
    """Let looks find partitions only once the copy has them, or rows of them: until then missing rows tell of them."""
    query_tables, root = Catalog.query_tables, TableName("public", "root")

    def of_before(self: Catalog) -> dict[TableName, ServerTable] | None:
        tables = query_tables(self)
        copied = table_format(Storage(str(storage))).open("public/root")
        if tables is not None and copied is not None and not copied.table.evidence.filled:
            current = tables[root].catalog_table
            table = with_partitions_of(current.table, copied.table)
            tables[root] = replace(tables[root], catalog_table=replace(current, table=table))
        return tables

    monkeypatch.setattr(Catalog, "query_tables", of_before)


@pytest.mark.parametrize("kept", [TableSettings(), ALL_COMPANIONS], ids=["rows", "all is kept"])
@pytest.mark.parametrize("moment", ["between runs", "while it runs"])
def test_a_partition_is_loaded_alone(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: TableSettings, moment: str
) -> None:
    options = {"publication": "p", "table_settings": kept}
    load = prepare(db18, tmp_path, table_settings=kept)
    observer = RowCounter(before=lambda: change(db18, 2), meanwhile=lambda: change(db18, 3))
    if moment == "between runs":
        db18.execute(ATTACH)
        change(db18, 1)
        replicate_with(settings(db18, tmp_path, once=True, **options), observer, engine=SequentialEngine())
    else:
        see_partitions_late(monkeypatch, tmp_path)
        with replicate_meanwhile(db18, tmp_path, observer, **options) as caught_up:
            db18.execute("INSERT INTO root VALUES (5000, 1, 'the process runs', 'b')")
            caught_up()
            db18.execute(ATTACH)
            # The rows of others in the same transaction are not lost with those that are missing.
            with db18.connection.transaction():
                change(db18, 1)
            caught_up()
    replicate_once(db18, tmp_path, **options)
    expect_only_partitions_were_read(tmp_path, observer, load)
    assert companion_differences(db18, tmp_path, COPIES, kept, counts_versions=False) == {}
    change(db18, 4)
    replicate_once(db18, tmp_path, **options)
    assert companion_differences(db18, tmp_path, COPIES, kept, counts_versions=False) == {}
    assert load_name(tmp_path, "public/root") == load


def test_rows_that_were_sent_before_their_partition_is_copied_have_one_version_each(
    db18: Database, tmp_path: Path
) -> None:
    """A row that was sent before its partition is copied is neither doubled nor begun anew."""
    load = prepare(db18, tmp_path, table_settings=ALL_COMPANIONS)
    db18.execute(ATTACH, "INSERT INTO root VALUES (900, 3, 'sent', 'b'), (901, 3, 'sent, gone', 'b')")
    db18.execute("UPDATE root SET v = 'sent twice' WHERE id = 900 AND day = 3", "DELETE FROM root WHERE id = 901")
    observer = run(db18, tmp_path, table_settings=ALL_COMPANIONS)
    expect_only_partitions_were_read(tmp_path, observer, load)
    versions = read_table(str(tmp_path / "public/root~history")).to_pylist()
    stored = sorted((row["id"], row["v"], row["_is_current"]) for row in versions if row["id"] in (900, 901))
    # Of those ids there are rows of other days too.
    assert [version for version in stored if version[1].startswith("sent")] == [
        (900, "sent", False), (900, "sent twice", True), (901, "sent, gone", False)
    ]  # fmt: skip
    assert sum(row["day"] == 3 and row["_is_current"] for row in versions) == 51
    changes = read_table(str(tmp_path / "public/root~changes"))
    assert changes.num_rows == 5


def run(db: Database, storage: Path, observer: RowCounter | None = None, **options: Any) -> RowCounter:
    observer = observer or RowCounter()
    replicate_with(settings(db, storage, once=True, publication="p", **options), observer, engine=SequentialEngine())
    return observer


ATTACHED = {
    "another order of columns": (
        "CREATE TABLE other (big text, gone int, v text, day int NOT NULL, id int NOT NULL, PRIMARY KEY (id, day)); "
        "ALTER TABLE other DROP gone; INSERT INTO other SELECT 'b', 'v', 4, i FROM generate_series(1, 40) AS i; "
        "ALTER TABLE root ATTACH PARTITION other FOR VALUES FROM (4) TO (5)"
    ),
    "partitions of partitions, and two at once": (
        "CREATE TABLE above (LIKE root INCLUDING ALL) PARTITION BY RANGE (day); "
        "CREATE TABLE day4 PARTITION OF above FOR VALUES FROM (4) TO (5); "
        "CREATE TABLE day5 PARTITION OF above FOR VALUES FROM (5) TO (6); "
        "INSERT INTO above SELECT i, 4 + i % 2, 'v', 'b' FROM generate_series(1, 40) AS i; "
        "ALTER TABLE root ATTACH PARTITION above FOR VALUES FROM (4) TO (6); " + ATTACH
    ),
    "with columns that change before and after": (
        "ALTER TABLE root ADD one int DEFAULT 7; ALTER TABLE day3 ADD one int DEFAULT 7; " + ATTACH + "; "
        "UPDATE root SET v = 'x' WHERE id < 20; ALTER TABLE root RENAME v TO w; ALTER TABLE root ADD two text; "
        "UPDATE root SET two = 'x' WHERE id < 10"
    ),
    "with a column that no row has yet": ATTACH + "; ALTER TABLE root ADD one int DEFAULT 7",
    "with rows of a default partition": (
        "CREATE TABLE rest PARTITION OF root DEFAULT; INSERT INTO root SELECT i, 9, 'rest', 'b' FROM generate_series(1, 40) AS i; "
        "BEGIN; CREATE TABLE day9 (LIKE root INCLUDING ALL); "
        "WITH moved AS (DELETE FROM rest WHERE day = 9 RETURNING *) INSERT INTO day9 SELECT * FROM moved; "
        "ALTER TABLE root ATTACH PARTITION day9 FOR VALUES FROM (9) TO (10); COMMIT"
    ),
    "deleted at once": ATTACH + "; DELETE FROM root WHERE day = 3 AND id < 50",
}


@pytest.mark.parametrize(
    "kept", [TableSettings(), pytest.param(ALL_COMPANIONS, marks=pytest.mark.thorough)], ids=["rows", "all is kept"]
)
@pytest.mark.parametrize("statements", ATTACHED.values(), ids=ATTACHED)
def test_attached_partitions_alone_are_read(
    db18: Database, tmp_path: Path, statements: str, kept: TableSettings
) -> None:
    load = prepare(db18, tmp_path, table_settings=kept)
    db18.execute(*statements.split("; "))
    observer = run(db18, tmp_path, table_settings=kept)
    expect_only_partitions_were_read(tmp_path, observer, load)
    assert companion_differences(db18, tmp_path, COPIES, kept, counts_versions=False) == {}
    # There is no reason for another load.
    assert run(db18, tmp_path, table_settings=kept).names == []


WHOLE = {
    "a table without a key": (
        "ALTER TABLE root DROP CONSTRAINT root_pkey; ALTER TABLE root REPLICA IDENTITY FULL; "
        "ALTER TABLE day1 REPLICA IDENTITY FULL; ALTER TABLE day2 REPLICA IDENTITY FULL; "
        "ALTER TABLE day3 REPLICA IDENTITY FULL; {run}; " + ATTACH
    ),
    "one that was truncated": ATTACH + "; INSERT INTO root VALUES (99, 3, 'sent', 'b'); TRUNCATE day3; "
    "INSERT INTO root VALUES (98, 3, 'sent', 'b')",
    "with one that is dropped": ATTACH + "; DROP TABLE day2",
    "detached and attached": ATTACH + "; {run}; ALTER TABLE root DETACH PARTITION day3; "
    "DELETE FROM day3 WHERE id < 20; " + ATTACH,
}


@pytest.mark.parametrize("statements", WHOLE.values(), ids=WHOLE)
def test_the_whole_table_is_reloaded_if_a_partition_cannot_be_loaded_alone(
    db18: Database, tmp_path: Path, statements: str
) -> None:
    load = prepare(db18, tmp_path)
    *first, last = statements.split("{run}; ")
    for part in first:
        db18.execute(*part.strip("; ").split("; "))
        run(db18, tmp_path)
    db18.execute(*last.split("; "))
    observer = run(db18, tmp_path)
    assert observer.rows >= 1050
    assert load_name(tmp_path, "public/root") != load
    assert companion_differences(db18, tmp_path, COPIES, TableSettings()) == {}


@pytest.mark.parametrize(
    "statements",
    ["ALTER TABLE root DETACH PARTITION day3", "TRUNCATE day3", "DROP TABLE day3", "DROP TABLE day1"],
)
@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_partitions_that_change_during_their_load_reload_the_table(
    db18: Database, tmp_path: Path, statements: str, moment: str
) -> None:
    load = prepare(db18, tmp_path)
    db18.execute(ATTACH, "INSERT INTO root VALUES (99, 3, 'sent', 'b')")
    run(db18, tmp_path, RowCounter(**{moment: lambda: db18.execute(statements)}))
    run(db18, tmp_path)
    assert companion_differences(db18, tmp_path, COPIES, TableSettings()) == {}
    # The rows of day1, which is dropped after the snapshot, are removed by its bounds.
    assert (load_name(tmp_path, "public/root") == load) is ((statements, moment) == ("DROP TABLE day1", "meanwhile"))


def test_many_partitions_attached_one_by_one_are_each_loaded_alone(db18: Database, tmp_path: Path) -> None:
    load = prepare(db18, tmp_path)
    for day in range(4, 9):
        db18.execute(
            f"CREATE TABLE day{day} (LIKE root INCLUDING ALL)",
            f"INSERT INTO day{day} SELECT i, {day}, 'v', 'b' FROM generate_series(1, 10) AS i",
            f"ALTER TABLE root ATTACH PARTITION day{day} FOR VALUES FROM ({day}) TO ({day + 1})",
        )
        assert run(db18, tmp_path).rows == 10
    assert load_name(tmp_path, "public/root") == load
    assert companion_differences(db18, tmp_path, COPIES, TableSettings()) == {}


MASKS: dict[str, Any] = {
    "masked": {"v": "hashed"}, "left_out": ["big"], "deletes": "soft", "history": True, "append": True
}  # fmt: skip


def test_masks_hold_for_its_rows_and_for_the_changes_meanwhile(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGICALREP_MASK_KEY", "a key for tests, and for them alone")
    options = {"config": read_config({"tables": {"root": MASKS}}, TableSettings())}
    load = prepare(db18, tmp_path, **options)
    db18.execute(ATTACH)
    change(db18, 1)
    actions = {"before": lambda: change(db18, 2), "meanwhile": lambda: change(db18, 3)}
    observer = run(db18, tmp_path, RowCounter(**actions), **options)
    expect_only_partitions_were_read(tmp_path, observer, load)
    run(db18, tmp_path, **options)
    (verdict,) = verify(ConnectionSettings(db18.dsn), Storage(str(tmp_path)))
    assert verdict.result == "equal", verdict
    clear = {
        "old",
        "three",
        "new",
        "again",
        *(f"{text}{number}" for text in ("changed", "other") for number in range(4)),
    }
    for path in tmp_path.rglob("*.parquet"):
        values = {value for row in pq.read_table(path).to_pylist() for value in row.values() if isinstance(value, str)}
        assert not values & clear
        assert "big" not in pq.read_schema(path).names


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [TableSettings(), ALL_COMPANIONS], ids=["rows", "all is kept"])
@pytest.mark.parametrize("told_by", ["a look", "a missing row"])
def test_kills_at_each_write_load_the_partition_alone_and_lose_no_row(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: TableSettings, told_by: str
) -> None:
    """One process after another is killed at its first write, then at its second, and so on; rows change meanwhile."""
    options = {"publication": "p", "table_settings": kept, "once": True}
    load, storage = prepare(db18, tmp_path, table_settings=kept), Storage(str(tmp_path))
    db18.execute(ATTACH)
    change(db18, 1)
    observers, phases = [], []
    with monkeypatch.context() as patch:
        if told_by == "a missing row":
            see_partitions_late(patch, tmp_path)
        kills = Kills(patch)
        for write in count(1):
            kills.at(write)
            if write % 3 == 0:
                with db18.connection.transaction():
                    change(db18, write)
            observers.append(RowCounter(meanwhile=partial(change, db18, write + 100)))
            try:
                replicate_with(settings(db18, tmp_path, **options), observers[-1], engine=SequentialEngine())
                break
            except Killed:
                pending = ChangeBuffer(storage).pending_loads().values()
                table = query_status(ConnectionSettings(db18.dsn), storage).tables["public.root"]
                if any(isinstance(observer, PartitionsLoad) for observer in pending) and table["state"] == "loading":
                    phases.append(table["phase"])
    assert write > 10
    assert sum("root" in observer.names for observer in observers) > 6
    assert phases
    assert set(phases) <= {"queued", "copying", "catching up"}
    assert max(observer.rows for observer in observers) <= 400
    run(db18, tmp_path, table_settings=kept)
    assert companion_differences(db18, tmp_path, COPIES, kept, counts_versions=False) == {}
    assert load_name(tmp_path, "public/root") == load
