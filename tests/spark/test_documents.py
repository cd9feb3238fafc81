"""The examples about the Spark source do what their pages say."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.rows import run
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.spark.frames import merged
from logicalrep.spark.options import page
from logicalrep.spark.schemas import TYPED_COLUMNS
from logicalrep.transactions.change_feed import change_rows
from tests.documents import DSN, ROOT, example
from tests.postgres.servers import Database
from tests.spark.streams import EACH_MODE, Stream
from tests.spark.workload import prepare
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("page", "having", "shown"),
    [
        ("README.md", "_change_type = 'insert' AND price > 10", "|2  |12.50|"),
        ("docs/how-to/spark.md", 'changes.select("op", "table"', "{id -> 2, item -> a book, price -> 12.50}"),
    ],
)
def test_the_quick_start(spark: Any, db18: Database, tmp_path: Path, page: str, having: str, shown: str) -> None:
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric(8, 2))",
        "CREATE PUBLICATION shop FOR ALL TABLES",
    )
    program = example(page, having)
    assert len(program.splitlines()) <= 10
    for name, replacement in ((DSN, db18.dsn), ("/tmp/checkpoint", str(tmp_path / "checkpoint"))):
        assert name in program
        program = program.replace(name, replacement)
    output = tmp_path / "output"
    with output.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=out, stderr=out, start_new_session=True)
    count_slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'spark'"
    try:
        eventually(lambda: db18.value(count_slots) == 1 or process.poll() is not None, seconds=600)
        db18.execute("INSERT INTO orders VALUES (1, 'a pen', 1.25), (2, 'a book', 12.50)")
        eventually(lambda: shown in output.read_text() or process.poll() is not None, seconds=600)
        assert process.poll() is None, output.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("mode", EACH_MODE)
def test_batches_applied_to_a_table(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    """The copy has the snapshot's rows, and follows later writes, deletes and truncates."""
    prepare(db18)
    run(db18.connection, 1)
    making = example("docs/how-to/spark-copies.md", "with snapshot(")
    for name, replacement in ((DSN, db18.dsn), ("public.orders", "public.plain"), ("/tmp/orders", str(tmp_path))):
        assert name in making
        making = making.replace(name, replacement)
    exec(making.replace('"publication": "shop"', '"publication": "p"'), {})
    old_rows = spark.read.parquet(str(tmp_path / "rows"))
    assert old_rows.count() == db18.value("SELECT count(*) FROM plain")
    assert old_rows.count() > 10
    stream = Stream(spark, db18, tmp_path, mode=mode, table="public.plain", max_changes_per_batch="4000")
    run(db18.connection, 2)
    db18.execute("UPDATE plain SET v = 'changed' WHERE id % 5 = 0", "DELETE FROM plain WHERE id % 7 = 0")
    # Values are stored out of line, stay unchanged, and move to another key.
    db18.execute("ALTER TABLE plain ALTER v SET STORAGE EXTERNAL")
    db18.execute("UPDATE plain SET v = repeat(id::text, 1000) WHERE id % 3 = 0")
    db18.execute("UPDATE plain SET n = 7 WHERE id % 3 = 0", "UPDATE plain SET id = -id WHERE id % 6 = 0")
    if mode == "walsender":
        # The truncate removes all rows of the snapshot.
        db18.execute("TRUNCATE plain", "INSERT INTO plain VALUES (-1, 'after')")
        run(db18.connection, 3)
    applying = example("docs/how-to/spark-copies.md", "def apply(")
    for name, replacement in (("/tmp/orders", str(tmp_path)), ("1 minute", "1 second")):
        assert name in applying
        applying = applying.replace(name, replacement)
    variables: dict[str, Any] = {"changes": stream.load()}
    exec(applying, variables)
    query = variables["query"]
    try:
        query.processAllAvailable()
        assert len(query.recentProgress) >= 2
        last = query.lastProgress["batchId"]
    finally:
        query.stop()
    versions = [int(path.name) for path in tmp_path.glob("[0-9]*")]
    assert max(versions) in (last, last - 1)
    columns = ["id", "v", "CAST(n AS string)", "date_format(t, 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "b"]
    rows = spark.read.parquet(str(tmp_path / str(max(versions)))).selectExpr(*columns).collect()
    truth = db18.rows("SELECT id, v, n::text, to_char(t, 'YYYY-MM-DD HH24:MI:SS.US'), b FROM plain ORDER BY id")
    assert sorted(map(tuple, rows)) == truth


def test_a_column_is_added_to_a_copy(spark: Any, db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, item text)",
        "INSERT INTO orders VALUES (1, 'book'), (2, 'pen')",
        "CREATE PUBLICATION shop FOR ALL TABLES",
    )
    variables: dict[str, Any] = {}

    def run_examples(*texts: str) -> None:
        for text in texts:
            program = example("docs/how-to/spark-copies.md", text)
            for name, replacement in ((DSN, db18.dsn), ("/tmp/orders", str(tmp_path)), ("1 minute", "1 second")):
                program = program.replace(name, replacement)
            exec(program, variables)
        try:
            variables["query"].processAllAvailable()
        finally:
            variables["query"].stop()

    run_examples("with snapshot(", "def apply(")
    db18.execute(
        "ALTER TABLE orders ADD COLUMN note text DEFAULT 'none'",
        "INSERT INTO orders VALUES (3, 'ink', 'blue')",
        "UPDATE orders SET item = 'bible' WHERE id = 1",
    )
    run_examples('new_columns="null"', "def apply(")
    last = max(int(path.name) for path in tmp_path.glob("[0-9]*"))
    rows = spark.read.parquet(str(tmp_path / str(last))).orderBy("id").collect()
    # The server never sends the new column's values of the existing rows.
    assert [tuple(row) for row in rows] == [(1, "bible", "none"), (2, "pen", None), (3, "ink", "blue")]


def test_changes_of_one_partition_are_not_sent(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        *(f"CREATE TABLE p{n} PARTITION OF root FOR VALUES FROM ({n}) TO ({n + 1})" for n in range(3)),
        "CREATE TABLE p3 (id int PRIMARY KEY)",
        "INSERT INTO p3 VALUES (3)",
        "CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root)",
        "INSERT INTO root VALUES (0), (1), (2)",
    )
    create_slot(db18.connection, "spark")
    db18.execute(
        "TRUNCATE p0",
        "ALTER TABLE root DETACH PARTITION p1",
        "DROP TABLE p2",
        "ALTER TABLE root ATTACH PARTITION p3 FOR VALUES FROM (3) TO (4)",
    )
    options = PluginOptions(publication_names=("p",), proto_version=1)

    def sent() -> list[str]:
        return [row["op"] for row in change_rows(peek(db18.connection, "spark", options), options.decoder())]

    assert sent() == []
    db18.execute("DELETE FROM root", "TRUNCATE root")
    assert sent() == ["delete", "truncate"]


@pytest.mark.thorough
def test_several_tables_by_one_slot(spark: Any, db18: Database, tmp_path: Path) -> None:
    prepare(db18, "spark")
    applying = example("docs/how-to/spark-copies.md", "typed_table(")
    for name, replacement in (
        ("public.orders", "public.plain"),
        ("public.customers", "public.toasted"),
        ("1 minute", "1 second"),
    ):
        assert name in applying
        applying = applying.replace(name, replacement)
    stream = Stream(spark, db18, tmp_path, max_changes_per_batch="2000")
    variables = {"spark": spark, "options": stream.options, "folder": str(tmp_path), "merged": merged}
    columns = {
        "plain": ["id", "v", "CAST(n AS string)", "date_format(t, 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "b"],
        "toasted": ["id", "big", "small"],
    }
    for table in columns:
        empty = stream.load(table=table).drop(*(field.name for field in TYPED_COLUMNS))
        spark.createDataFrame([], empty.schema).write.parquet(str(tmp_path / f"public.{table}" / "rows"))
    for seed in range(2):
        run(db18.connection, seed)
    exec(applying, variables)
    query = variables["query"]
    try:
        query.processAllAvailable()
        assert len(query.recentProgress) >= 2
    finally:
        query.stop()
    for table, selected in columns.items():
        last = max(int(path.name) for path in (tmp_path / f"public.{table}").glob("[0-9]*"))
        rows = spark.read.parquet(str(tmp_path / f"public.{table}" / str(last))).selectExpr(*selected).collect()
        own = "id, v, n::text, to_char(t, 'YYYY-MM-DD HH24:MI:SS.US'), b" if table == "plain" else "id, big, small"
        truth = db18.rows(f"SELECT {own} FROM {table} ORDER BY id")
        assert len(truth) > 1
        assert sorted(map(tuple, rows)) == truth


def test_a_typed_table_of_captures(spark: Any) -> None:
    reading = example("docs/how-to/spark.md", "_ordinal bigint NOT NULL")
    path = ROOT / "tests/captures/pg18/mixed/v4-late.sql.jsonl.gz"
    for name, replacement in (("captures/", str(path)), ("public.orders", "public.x_log"), ("item", "msg")):
        assert name in reading
        reading = reading.replace(name, replacement)
    variables: dict[str, Any] = {"spark": spark}
    exec(reading.replace("id int", "id bigint"), variables)
    rows = variables["orders"].orderBy("_commit_version", "_ordinal").collect()
    assert len(rows) == 1000
    assert (rows[0].id, rows[0].msg, rows[0]._change_type) == (1, "bulk", "insert")


def test_the_columns_of_spark_changes(spark: Any, db18: Database) -> None:
    """Spark 4.2 and later parse the page's query; its columns have the types that Spark requires of `CHANGES`."""
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, price numeric(8, 2))", "CREATE PUBLICATION shop FOR ALL TABLES"
    )
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "shop"}
    variables: dict[str, Any] = {"spark": spark, "options": options}
    exec(example("docs/how-to/spark.md", "prices = "), variables)
    types = {field.name: field.dataType.simpleString() for field in variables["prices"].schema}
    assert types == {
        "id": "int",
        "price": "decimal(8,2)",
        "_change_type": "string",
        "_commit_version": "bigint",
        "_commit_timestamp": "timestamp",
    }
    if not hasattr(spark.read, "changes"):
        pytest.skip("this version of Spark has no CHANGES")
    query = example("docs/how-to/spark.md", "CHANGES FROM VERSION")
    parser = getattr(getattr(spark._jvm, "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"), "MODULE$")
    assert "RelationChanges" in parser.parsePlan(query.strip()).toString()


@pytest.mark.thorough
def test_an_auto_cdc_flow_takes_a_typed_table(spark: Any, db18: Database, tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark.pipelines") is None or importlib.util.find_spec("grpc") is None:
        pytest.skip("there are no declarative pipelines")
    import pyspark
    from pyspark import pipelines

    if not hasattr(pipelines, "create_auto_cdc_flow"):
        pytest.skip("there is no AUTO CDC")
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY, item text)", "CREATE PUBLICATION shop FOR ALL TABLES")
    definition = example("docs/how-to/spark.md", "create_auto_cdc_flow").replace(DSN, db18.dsn)
    (tmp_path / "flow.py").write_text(definition)
    specification = tmp_path / "spark-pipeline.yml"
    specification.write_text(
        f"name: shop\nstorage: file://{tmp_path}/storage\nlibraries:\n  - glob:\n      include: flow.py\n"
    )
    program = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    done = subprocess.run(
        [program, "dry-run", "--spec", specification],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_options_is_the_table_of_options() -> None:
    assert (ROOT / "docs/reference/spark-options.md").read_text("utf-8") == page(), (
        "run `make docs/reference/spark-options.md`"
    )
