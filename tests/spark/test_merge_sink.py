"""The MERGE of docs/how-to/spark.md keeps a Delta table equal to the server's, also if Spark repeats a batch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT, example
from tests.pipeline.upkeep.foreign.spark_server import SparkNotInstalledError, fetch
from tests.postgres.servers import Database

pytestmark = pytest.mark.thorough

_PROGRAM = """
import json, sys

import psycopg

from logicalrep.spark import session, snapshot

jars, options, folder, batches = json.loads(sys.argv[1])
settings = {
    "spark.jars": jars,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.warehouse.dir": folder + "/warehouse",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
spark = session("local[2]", **settings)
with snapshot(**options) as name:
    rows = spark.read.format("logicalrep").options(**options, table="public.orders", snapshot=name).load()
    columns = [column for column in rows.columns if not column.startswith("_")]
    rows.select(columns).write.format("delta").saveAsTable("orders")
orders = spark.readStream.format("logicalrep").options(**options, table="public.orders").load()
{block}
def merge_twice(batch, number):
    merge(batch, number)
    merge(batch, number)

writer = orders.writeStream.foreachBatch(merge_twice).option("checkpointLocation", folder + "/checkpoint")
with psycopg.connect(options["dsn"], autocommit=True) as connection:
    for statements in batches:
        for statement in statements:
            connection.execute(statement)
        writer.trigger(availableNow=True).start().awaitTermination()
print(json.dumps([list(row) for row in spark.table("orders").orderBy("id").collect()]))
"""


def test_a_repeated_batch_changes_nothing(db18: Database, tmp_path: Path) -> None:
    try:
        jars, environment = fetch()
    except SparkNotInstalledError as error:
        pytest.skip(str(error))
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, item text, note text)",
        "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL",
        "INSERT INTO orders SELECT i, 'item', repeat(i::text, 4000) FROM generate_series(1, 20) AS i",
        "CREATE PUBLICATION shop FOR ALL TABLES",
    )
    batches = [
        ["UPDATE orders SET item = 'changed' WHERE id % 3 = 0"],
        # The server does not send the notes; a repeated batch no longer finds them under their old keys.
        ["UPDATE orders SET id = -id WHERE id % 5 = 0", "DELETE FROM orders WHERE id = 1"],
    ]
    block, starting = example("docs/how-to/spark.md", "MERGE INTO").split("\n\n\norders.writeStream")
    assert ".foreachBatch(merge)" in starting
    options = {"dsn": db18.dsn, "slot": "spark", "publication": "shop"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.replace("{block}", block), json.dumps([jars, options, str(tmp_path), batches])],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert rows == [list(row) for row in db18.rows("SELECT id, item, note FROM orders ORDER BY id")]
