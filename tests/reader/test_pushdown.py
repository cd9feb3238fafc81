"""Each library reads only the columns and the files that its query needs, and no deleted rows."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from unittest import mock

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import logicalrep
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.reader import ReadError, TableVersion, scan
from tests.pipeline.replicating import replicate_once
from tests.pipeline.stored import MODES
from tests.postgres.servers import Database

DAY = date(2026, 1, 15)
EXPECTED = [id_ for id_ in range(4001, 8001) if id_ % 10]
PREDICATES = [
    "day > DATE '2026-01-15'",
    "NOT (day > DATE '2026-01-15')",
    "day IS NULL",
    "day IS NOT NULL AND id IN (1, 5, 7999, 8001)",
    "day IN (DATE '2026-02-01', DATE '2026-01-10') AND id < 4100",
    "id <> 5 OR day IS NULL",
    "id BETWEEN 3990 AND 4010 AND wide > '8'",
    "wide < '0'",
    "id + 1 > 8000",
    "price > 7990.5",
    "price = 'NaN'::float",
]
"""Conditions of DuckDB, of which DuckDB passes on some."""


def bytes_read(action: Callable[[], object]) -> int:
    """Return the bytes that this process reads from files and sockets during an action."""

    def count() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    start = count()
    action()
    return count() - start


def in_duckdb(orders: TableVersion) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().sql(f"SELECT id FROM orders WHERE day > DATE '{DAY}' ORDER BY id")


def in_polars(orders: TableVersion) -> polars.LazyFrame:
    return orders.lazy().filter(polars.col("day") > DAY).select("id").sort("id")


def in_arrow(orders: TableVersion) -> pa.Table:
    return orders.to_table(columns=["id"], filter=pc.field("day") > DAY).sort_by("id")


QUERIES: dict[str, Callable[[TableVersion], list[int]]] = {
    "DuckDB": lambda orders: [row[0] for row in in_duckdb(orders).fetchall()],
    "Polars": lambda orders: in_polars(orders).collect()["id"].to_list(),
    "pyarrow": lambda orders: in_arrow(orders)["id"].to_pylist(),
    "pandas": lambda orders: sorted(orders.select(["id"], where=[("day", ">", DAY)]).pandas()["id"]),
}


@pytest.fixture(params=["delta", "iceberg"])
def orders(request: pytest.FixtureRequest, db18: Database, tmp_path: Path) -> TableVersion:
    """Return a table with a file per month, each with deleted rows, and a file of rows without a day."""
    table_format: FormatName = request.param
    limits = Limits(small_file_bytes=1, marked_share=1)
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY, day date, price float, wide text)")
    for number, day in enumerate(["'2026-01-01'", "'2026-02-01'", "NULL"]):
        db18.execute(
            f"INSERT INTO orders SELECT i, {day}, CASE WHEN i % 3 = 0 THEN 'NaN'::float ELSE i END, "
            "(SELECT string_agg(md5(i || '-' || part), '') FROM generate_series(1, 8) AS part) "
            f"FROM generate_series({1 + 4000 * number}, {4000 + 4000 * number}) AS i"
        )
        replicate_once(db18, tmp_path, limits=limits, write_mode=MODES[1], format=table_format)
    db18.execute("DELETE FROM orders WHERE id % 10 = 0")
    replicate_once(db18, tmp_path, limits=limits, write_mode=MODES[1], format=table_format)
    return logicalrep.read(tmp_path, "orders")


def test_a_query_reads_the_columns_and_the_files_that_it_needs(
    orders: TableVersion, tmp_path: Path, spark: SparkSession
) -> None:
    files = sorted((tmp_path / "public/orders").rglob("part-*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    size = sum(path.stat().st_size for path in files)
    assert len(files) == 3
    assert bytes_read(orders.arrow) > 0.9 * size
    for name, query in QUERIES.items():
        assert query(orders) == EXPECTED, name
        assert bytes_read(lambda query=query: query(orders)) < size / 10, name  # type: ignore[misc]
    # Plans: what the libraries leave to the scan.
    plan = in_duckdb(orders).explain()
    assert re.search(r"Filters:\W+day\W+>", plan), plan
    assert "wide" not in plan
    plan = in_polars(orders).explain()
    assert 'col("day") > 2026-01-15' in plan.partition("SELECTION:")[2], plan
    assert "PROJECT 2/4 COLUMNS" in plan

    rows = orders.spark(spark).where(col("day") > DAY).select("id")
    assert sorted(row.id for row in rows.collect()) == EXPECTED
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        rows.explain("formatted")
    assert "PushedFilters: [IsNotNull(day), GreaterThan(day,2026-01-15)]" in printed.getvalue()
    assert re.search(r"ReadSchema: struct<id:int,day:date\W", printed.getvalue()), printed.getvalue()

    # A file without matching rows is not opened. Spark, with its own filter, opens the ends of all files.
    files[0].unlink()
    for query in QUERIES.values():
        assert query(orders) == EXPECTED
    assert orders.select(where=[("day", ">", DAY)]).spark(spark).count() == len(EXPECTED)
    with pytest.raises(ReadError, match="VERSION_GONE"):
        orders.arrow()


def test_passed_filters_and_columns_change_no_result(orders: TableVersion) -> None:
    whole, connection = orders.arrow(), duckdb.connect()
    assert (whole.num_rows, orders.count_rows()) == (10800, 10800)
    assert orders.head(5).num_rows == 5
    assert orders.count_rows(filter=pc.field("day").is_null()) == 3600
    for predicate in PREDICATES:
        query = f"SELECT count(*), sum(id), max(wide), count(day) FROM {{}} WHERE {predicate}"
        expected = connection.sql(query.format("whole")).fetchall()
        assert connection.sql(query.format("orders")).fetchall() == expected, predicate
        # A restricted version is a table of its own.
        january = orders.select(["id", "day", "wide", "price"], where=[("day", "<", DAY)])
        of_january = f"(SELECT * FROM whole WHERE day < DATE '{DAY}')"
        expected = connection.sql(query.format(of_january)).fetchall()
        relation = january.duckdb(connection).query("january", query.format("january"))
        assert relation is not None
        assert relation.fetchall() == expected, predicate
    lazy, frame = orders.lazy(), orders.polars()
    number = polars.col("id")
    for expression in [number.is_in([3, 10, 9999]), polars.col("day").is_null() & (number % 7 == 1), ~(number < 9000)]:
        assert lazy.filter(expression).sort("id").collect().equals(frame.filter(expression).sort("id")), expression
    assert lazy.select(polars.len()).collect().item() == lazy.filter(number > 0).collect().height == 10800


def test_arrow_never_reads_a_version_by_itself(orders: TableVersion) -> None:
    """Code of Arrow that does not call a version's methods fails, and so do methods that nothing here implements."""
    with pytest.raises((OSError, pa.ArrowException), match=r"TableVersion|FieldRef"):
        ds.Scanner.from_dataset(orders).to_table()
    own = {name for cls in TableVersion.__mro__ if cls.__module__.startswith("logicalrep") for name in vars(cls)}
    inherited = {name for name in dir(ds.UnionDataset) if not name.startswith("_")} - own
    of_scanner = {"count_rows", "head", "take", "to_batches", "to_table"}
    assert inherited == of_scanner | {"children", "partition_expression"}, "does pyarrow implement it by scanner()?"
    for name in ("filter", "get_fragments", "join", "sort_by"):
        with pytest.raises(NotImplementedError, match="to_table"):
            getattr(orders, name)("id")


def test_a_wide_table_needs_few_attempts_to_find_the_columns_of_a_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(1024)])
    # Each attempt has a schema of its own.
    attempts = mock.Mock(wraps=pa.schema)
    monkeypatch.setattr(pa, "schema", attempts)
    condition = (pc.field("c700") > 5) & (pc.field("c3") == 1)
    assert scan.columns_of(condition, schema) == ["c3", "c700"]
    assert attempts.call_count < 50
