"""Tables whose files are divided by a column's value, its day or month, or a bucket: each row is where it belongs."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import logicalrep
from logicalrep.pipeline.config.nodes import ConfigError
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from tests.documents import examples
from tests.pipeline.comparison import find_differences
from tests.pipeline.partitioned_files import EPOCH, files_of, stored_table
from tests.pipeline.reading import newest_metadata
from tests.pipeline.replicating import replicate_for_warnings, replicate_meanwhile, replicate_once
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, MODES, WriteMode
from tests.postgres.servers import Database

BY = ["region", "day(created_at)", "bucket(2, id)"]
SETUP = """
CREATE TABLE orders (id int PRIMARY KEY, region text, created_at timestamptz, born date, v text);
INSERT INTO orders SELECT i, (ARRAY['EU', 'a/b', 'ü''" %2F', NULL, 'null'])[1 + i % 5],
    timestamptz '2026-11-01 22:00Z' + i * interval '30 minutes', date '1969-12-01' + i, 'v' || i
    FROM generate_series(1, 140) AS i;
"""
FORMATS: list[FormatName] = ["delta", "iceberg"]
FOLDERS = ["public/orders", "public/orders~changes"]
STEPS = (
    "UPDATE orders SET v = 'first' WHERE id = 100",
    "ALTER TABLE orders RENAME region TO area;\nUPDATE orders SET area = 'new' WHERE id < 20",
    "ALTER TABLE orders ALTER area TYPE text;\nALTER TABLE orders RENAME created_at TO at;\n"
    "UPDATE orders SET at = '2026-11-20' WHERE id < 10",
    "ALTER TABLE orders DROP COLUMN v;\nDELETE FROM orders WHERE id = 50",
    "ALTER TABLE orders ADD COLUMN created_at date;\n"
    "INSERT INTO orders VALUES (999, 'newer', '2026-11-21', NULL, '2026-11-22')",
)
SAME = "public.orders: partition_by changed to area, day(at): replicate rewrote 0 files"


def execute(db: Database, statements: str) -> None:
    for statement in statements.strip().split(";\n"):
        db.execute(statement.rstrip(";\n"))


def differences(
    db: Database, storage: Path, companion: str = "", condition: pc.Expression | None = None
) -> dict[str, str]:
    # The table's own columns of its partitions are none of the server's.
    condition = pc.scalar(True) if condition is None else condition
    return find_differences(db.dsn, str(storage), ["public.orders"], companion=companion, condition=condition)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_each_row_is_in_its_partition_also_if_it_moves(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: WriteMode, format_: FormatName
) -> None:
    limits = MARKS_IN_SMALL_FILES
    execute(db18, SETUP)
    options: dict[str, Any] = {"format": format_, "write_mode": mode, "history": True, "append": True}
    options["config"] = {"tables": {"orders": {"partition_by": BY}}}
    assert replicate_for_warnings(db18, tmp_path, limits=limits, **options) == []
    loaded = files_of(tmp_path)
    assert {*loaded.values()} == {1}
    assert [len({partition[number] for partition in loaded}) for number in range(3)] == [5, 4, 2]
    execute(
        db18,
        """
UPDATE orders SET v = 'new' WHERE id % 7 = 0;
UPDATE orders SET region = 'EU' WHERE id % 5 = 1;
UPDATE orders SET created_at = created_at + interval '1 month', born = NULL WHERE id BETWEEN 100 AND 120;
UPDATE orders SET id = id + 1000 WHERE id BETWEEN 50 AND 60;
DELETE FROM orders WHERE id % 11 = 0;
INSERT INTO orders SELECT i, 'new', now(), now(), 'v' FROM generate_series(2000, 2010) AS i;
UPDATE orders SET region = NULL WHERE id = 1;
""",
    )
    assert replicate_for_warnings(db18, tmp_path, limits=limits, **options) == []
    assert differences(db18, tmp_path) == {}
    assert differences(db18, tmp_path, "~history", pc.field("_is_current")) == {}
    for folder in ("public/orders", "public/orders~history", "public/orders~changes"):
        assert len(files_of(tmp_path, folder)) > 4
    assert len(files_of(tmp_path)) > len(loaded)
    assert [verdict.result for verdict in verify(db18.settings, Storage(str(tmp_path)))] == ["equal"]
    read = logicalrep.read(tmp_path, "orders").polars()
    # The table's own columns of its partitions are none of its reader's.
    assert read.columns == ["id", "region", "created_at", "born", "v"]
    assert read["id"].sum() == db18.value("SELECT sum(id) FROM orders")


CONFIG = {"tables": {"orders": {"partition_by": BY}}}
DELTA: dict[str, Any] = {"format": "delta", "config": CONFIG}


def delta(storage: Path, folder: str = "public/orders") -> DeltaTable:
    return DeltaTable(str(storage / folder))


def stopped(db: Database, storage: Path, **options: Any) -> str:
    with pytest.raises(TablesStoppedError) as caught:
        replicate_for_warnings(db, storage, **options)
    return str(caught.value)


def test_readers_of_delta_tables_find_the_partitions_and_open_no_other_files(db18: Database, tmp_path: Path) -> None:
    execute(db18, SETUP)
    replicate_for_warnings(db18, tmp_path, **DELTA)
    table, day = delta(tmp_path), date(2026, 11, 3)
    assert table.metadata().partition_columns == ["region", "_created_at_day", "_id_bucket"]
    chosen = [("region", "=", "a/b"), ("_created_at_day", "=", day.isoformat())]
    uris = table.file_uris(file_pruning_predicate=chosen)
    assert 0 < len(uris) <= 2 < len(table.file_uris())
    # No value is in a path.
    assert all(re.fullmatch(r"part-[0-9a-f]{32}\.parquet", Path(uri).name) for uri in table.file_uris())
    assert {Path(uri).parent for uri in uris} == {tmp_path / "public/orders"}
    wanted = "SELECT id FROM orders WHERE region = 'a/b' AND (created_at AT TIME ZONE 'UTC')::date = '2026-11-03'"
    ids = {row[0] for row in db18.rows(wanted)}
    dataset = table.to_pyarrow_dataset()
    is_chosen = (pc.field("region") == "a/b") & (pc.field("_created_at_day") == day)
    assert ids == {*dataset.to_table(filter=is_chosen)["id"].to_pylist()}
    by_polars = polars.scan_delta(str(tmp_path / "public/orders")).filter(
        (polars.col("region") == "a/b") & (polars.col("_created_at_day") == day)
    )
    assert ids == {*by_polars.collect()["id"]}
    # A condition on the column itself leaves out files by their bounds.
    at = datetime(2026, 11, 3, tzinfo=UTC)
    late = [*dataset.get_fragments(pc.field("created_at") >= at)]
    assert 0 < len(late) < len([*dataset.get_fragments()])
    query = f"SELECT count(*), count(DISTINCT region) FROM orders WHERE _created_at_day >= DATE '{day}'"
    (counts,) = pa.table(QueryBuilder().register("orders", table).execute(query).read_all()).to_pylist()
    assert list(counts.values()) == [
        *db18.rows("SELECT count(*), count(DISTINCT region) FROM orders WHERE created_at >= '2026-11-03Z'")[0]
    ]
    # What delta-rs writes anew has no column of partitions.
    assert replicate_for_warnings(db18, tmp_path, **DELTA) == []
    db18.execute("UPDATE orders SET v = 'again' WHERE id < 20")
    replicate_for_warnings(db18, tmp_path, **DELTA)
    assert delta(tmp_path).optimize.z_order(["id"])["numFilesAdded"] > 0
    db18.execute("UPDATE orders SET v = 'last', region = 'EU' WHERE id % 3 = 0")
    replicate_for_warnings(db18, tmp_path, **DELTA)
    assert differences(db18, tmp_path) == {}
    assert replicate_for_warnings(db18, tmp_path, **DELTA) == []


def test_readers_of_iceberg_tables_find_the_partitions_and_open_no_other_files(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(small_file_bytes=1, marked_share=1, merged_share=1)
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    # Files with marked rows are left as they are.
    execute(db18, SETUP)
    options: dict[str, Any] = {"format": "iceberg", "config": CONFIG, "write_mode": "merge-on-read"}
    replicate_for_warnings(db18, tmp_path, limits=limits, **options)
    db18.execute(
        "DELETE FROM orders WHERE id % 4 = 0", "INSERT INTO orders VALUES (500, '', '12000-01-01', NULL, 'far')"
    )
    replicate_for_warnings(db18, tmp_path, limits=limits, **options)
    path = newest_metadata(str(tmp_path / "public/orders"))
    table = StaticTable.from_metadata(path)
    fields = [(field.name, str(field.transform)) for field in table.spec().fields]
    assert fields == [("_region", "identity"), ("_created_at_day", "day"), ("_id_bucket", "bucket[2]")]
    where = "region = 'a/b' AND created_at >= '2026-11-03T00:00:00+00:00' AND created_at < '2026-11-04T00:00:00+00:00'"
    planned, all_files = ([*table.scan(**of).plan_files()] for of in ({"row_filter": where}, {}))
    assert 0 < len(planned) <= 2 < len(all_files)
    # Each data file has the deletes of its partition alone.
    assert any(task.delete_files for task in planned)
    for task in all_files:
        assert {file.partition for file in task.delete_files} <= {task.file.partition}
    ids = {row[0] for row in db18.rows(f"SELECT id FROM orders WHERE {where}")}
    assert ids == {*table.scan(row_filter=where).to_arrow()["id"].to_pylist()}
    assert len([*table.scan(row_filter="id = 7").plan_files()]) <= len(all_files) // 2
    assert polars.scan_iceberg(path).filter(polars.col("region") == "").collect()["id"].to_list() == [500]
    assert {
        re.fullmatch(r"part-[0-9a-f]{32}\.parquet", Path(task.file.file_path).name) is None for task in all_files
    } == {False}
    assert {row[0] for row in db18.rows("SELECT id FROM orders")} == {*table.scan().to_arrow()["id"].to_pylist()}


@pytest.mark.parametrize("format_", FORMATS)
def test_other_partitions_are_a_rewrite_that_says_so(db18: Database, tmp_path: Path, format_: FormatName) -> None:
    execute(db18, SETUP)
    db18.execute("CREATE TABLE other (id int PRIMARY KEY)")
    options: dict[str, Any] = {"format": format_, "history": True, "append": True}
    assert replicate_for_warnings(db18, tmp_path, **options) == []
    db18.execute("UPDATE orders SET v = 'new' WHERE id % 5 = 0")
    config = {"tables": {"orders": {"partition_by": ["month(born)", "region"]}}}
    (warning,) = replicate_for_warnings(db18, tmp_path, config=config, **options)
    assert re.fullmatch(
        r"public.orders: partition_by changed to month\(born\), region: replicate rewrote \d files", warning
    )
    load = load_of_orders(tmp_path)
    assert [len(files_of(tmp_path, folder)) for folder in ("public/orders", "public/orders~history")] == [25, 25]
    assert differences(db18, tmp_path) == {}
    # A month is a text in Delta tables.
    if format_ == "delta":
        months = {row["_born_month"] for row in delta(tmp_path).to_pyarrow_table().to_pylist()}
        assert months == {"1969-12", "1970-01", "1970-02", "1970-03", "1970-04"}
    assert replicate_for_warnings(db18, tmp_path, config=config, **options) == []
    (warning,) = replicate_for_warnings(db18, tmp_path, **options, config={"tables": {"orders": {"append": True}}})
    assert "partition_by changed to nothing" in warning
    assert {*files_of(tmp_path)} == {()}
    if format_ == "delta":
        assert delta(tmp_path).metadata().partition_columns == []
    # A column of earlier partitions may go.
    db18.execute("ALTER TABLE orders DROP COLUMN born", "UPDATE orders SET v = 'last' WHERE id < 5")
    assert replicate_for_warnings(db18, tmp_path, **options, config={"tables": {"orders": {"append": True}}}) == []
    assert differences(db18, tmp_path) == {}
    assert load_of_orders(tmp_path) == load


def load_of_orders(storage: Path) -> str:
    return stored_table(storage, "public/orders").load


@pytest.mark.parametrize("format_", FORMATS)
def test_schema_changes_leave_the_partitions_and_a_dropped_column_stops_the_table(
    db18: Database, tmp_path: Path, format_: FormatName
) -> None:
    execute(db18, SETUP)
    db18.execute("ALTER TABLE orders ALTER region TYPE varchar(80)")

    def options(*by: str) -> dict[str, Any]:
        return {"format": format_, "append": True, "config": {"tables": {"orders": {"partition_by": [*by]}}}}

    assert replicate_for_warnings(db18, tmp_path, **options("region", "day(created_at)")) == []
    load = load_of_orders(tmp_path)
    limits = Limits(loads_at_once=1_000_000)
    with replicate_meanwhile(db18, tmp_path, limits=limits, **options("region", "day(created_at)")) as caught_up:
        for statements in STEPS:
            execute(db18, statements)
            caught_up(60)
        assert differences(db18, tmp_path) == {}
        assert load_of_orders(tmp_path) == load
        # What another load needs, although the settings do not know the names: a type that is another one.
        db18.execute("ALTER TABLE orders ALTER at TYPE timestamp USING at AT TIME ZONE 'UTC'")
        db18.execute("UPDATE orders SET area = 'moved' WHERE id = 999")
        caught_up(60)
    assert load_of_orders(tmp_path) != load
    assert differences(db18, tmp_path) == {}
    # A restart with the same settings keeps the partitions; new settings name the columns as they are now.
    (warning,) = replicate_for_warnings(db18, tmp_path, **options("region", "day(created_at)"))
    assert "public.orders has no published column region" in warning
    assert differences(db18, tmp_path) == {}
    with pytest.raises(ConfigError, match="has no published column region"):
        replicate_for_warnings(db18, tmp_path, **options("region", "day(at)"))
    assert replicate_for_warnings(db18, tmp_path, **options("area", "day(at)")) == [SAME]
    by_new_names = {partition: count for partition, count in files_of(tmp_path).items() if partition[0] == "moved"}
    assert by_new_names == {("moved", (date(2026, 11, 21) - EPOCH).days): 1}
    files_of(tmp_path, "public/orders~changes")
    db18.execute("ALTER TABLE orders DROP COLUMN at", "INSERT INTO orders VALUES (1001, 'x')")
    assert "[PARTITION_COLUMN] partition_by names the column at, which public.orders" in stopped(
        db18, tmp_path, **options("area", "day(at)")
    )
    assert replicate_for_warnings(db18, tmp_path, **options("area")) == []
    assert differences(db18, tmp_path) == {}
    assert {len(partition) for folder in FOLDERS for partition in files_of(tmp_path, folder)} == {1}


def test_a_value_that_is_no_partition_of_a_delta_table_stops_it_and_can_be_skipped(
    db18: Database, tmp_path: Path
) -> None:
    execute(db18, SETUP)
    db18.execute("CREATE TABLE days (id int PRIMARY KEY, at timestamp)", "INSERT INTO days VALUES (1, 'infinity')")
    config = {"tables": {"orders": {"partition_by": "region"}, "days": {"partition_by": "day(at)"}}}
    options: dict[str, Any] = {"format": "delta", "config": config, "unrepresentable": "null"}
    replicate_for_warnings(db18, tmp_path, **options)
    # Infinity is NULL, also as a partition.
    assert files_of(tmp_path, "public/days") == {(None,): 1}
    db18.execute("UPDATE orders SET v = 'before' WHERE id = 2", "UPDATE orders SET region = '' WHERE id = 3")
    db18.execute("INSERT INTO days VALUES (2, '10000-01-01')")
    text = stopped(db18, tmp_path, **options)
    assert "the column region has the text '', which programs read as NULL" in text
    assert "the column at has a date outside of the years 1 to 9999" in text
    assert delta(tmp_path).to_pyarrow_dataset().count_rows(pc.field("v") == "before") == 1
    # Buckets have all values.
    config["tables"] |= {"orders": {"partition_by": "bucket(3, region)"}, "days": {"partition_by": "bucket(3, at)"}}
    replicate_for_warnings(db18, tmp_path, **options)
    assert differences(db18, tmp_path) == {}
    assert {row["region"] for row in delta(tmp_path).to_pyarrow_table().to_pylist()} >= {"", None, "EU"}


def test_an_iceberg_table_is_divided_and_read_as_the_page_says(db18: Database, tmp_path: Path) -> None:
    page = "docs/how-to/partitions.md"
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, region text, created_at timestamptz)",
        "CREATE TABLE visits (id int PRIMARY KEY, user_id int)",
        "INSERT INTO orders VALUES (1, 'EU', '2026-11-25'), (2, 'EU', '2026-11-26'), (3, 'US', '2026-11-26')",
    )
    (config,) = examples(page, "yaml")
    (tmp_path / "shop.yaml").write_text(config)
    settings = read_config(tmp_path / "shop.yaml", TableSettings())
    replicate_once(db18, tmp_path / "lake", format="iceberg", config=settings)
    of_page = "lake/public/orders/metadata/v7.metadata.json"
    (reading,) = examples(page, "python")
    assert of_page in reading
    names: dict[str, Any] = {}
    exec(
        reading.replace(of_page, newest_metadata(str(tmp_path / "lake/public/orders"))).replace(
            "StaticTable.from", "found = StaticTable.from"
        ),
        names,
    )
    assert names["found"].column("id").to_pylist() == [2]
