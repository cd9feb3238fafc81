"""Demonstration on one machine: `python -m logicalrep.spark.demo` streams a shop's changes and compares the result."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.server import Connection
from logicalrep.spark.quiet import silence_java
from logicalrep.spark.sessions import session

_SHOP = """
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, item text, price numeric(10,2), placed timestamptz);
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE PUBLICATION shop FOR ALL TABLES;
SELECT pg_create_logical_replication_slot('demo', 'pgoutput');
"""

# A day of the shop: the server sends committed changes, and no change that was rolled back.
_BUSINESS = """
INSERT INTO customer VALUES (1, 'Ada', 'London'), (2, 'Grace', 'New York'), (3, 'Emmy', 'Erlangen');
INSERT INTO orders
  SELECT i, 1 + i % 3, 'item ' || i % 7, i * 7 % 500 + 0.99, now() FROM generate_series(1, 5000) AS i;
UPDATE customer SET city = 'Göttingen' WHERE name = 'Emmy';
UPDATE orders SET price = price * 0.9 WHERE id % 10 = 0;
BEGIN;
INSERT INTO customer VALUES (4, 'Nobody', NULL);
ROLLBACK;
BEGIN;
INSERT INTO customer VALUES (5, 'Mary', 'Richmond');
SAVEPOINT regret;
DELETE FROM orders;
ROLLBACK TO regret;
COMMIT;
BEGIN;
DELETE FROM customer WHERE id = 2;
DELETE FROM orders WHERE customer_id = 2;
PREPARE TRANSACTION 'leaving';
INSERT INTO orders VALUES (10000, 5, 'book', 12.50, now());
COMMIT PREPARED 'leaving';
"""

_Rows = dict[str, dict[str, str | None]]


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="logicalrep-demo-") as folder,
        LocalServer(find_installation(18)) as server,
        ConnectionSettings(server.dsn).connect() as connection,
        silence_java(),
    ):
        connection.execute("SET search_path TO public")
        _execute(connection, _SHOP)
        _say(f"PostgreSQL {connection.info.parameter_status('server_version')} runs, with a shop; starting Spark ...")
        spark = session("local[2]", **{"spark.driver.memory": "1g"})
        try:
            feed = _stream_changes(spark, server.dsn, connection, Path(folder))
            _show(feed)
            return _check(feed, connection)
        finally:
            spark.stop()


def _stream_changes(spark: SparkSession, dsn: str, connection: Connection, folder: Path) -> DataFrame:
    changes = spark.readStream.format("logicalrep").options(dsn=dsn, slot="demo", publication="shop").load()
    files = changes.writeStream.format("parquet").option("path", str(folder / "changes"))
    query = files.option("checkpointLocation", str(folder / "checkpoint")).start()
    _say(f"Spark {spark.version} streams the publication; a day in the shop passes ...")
    _execute(connection, _BUSINESS)
    query.processAllAvailable()
    query.stop()
    return spark.read.parquet(str(folder / "changes"))


def _show(feed: DataFrame) -> None:
    _say(f"\n{feed.count():,} changes; by table and operation:")
    feed.groupBy("table", "op").count().orderBy("table", "op").show()
    _say("Changes of the customers, without rolled-back changes:")
    customers = feed.where("table = 'customer'").orderBy("commit_lsn", "ordinal")
    customers.select("op", "before", "after", "commit_timestamp", "xid", "ordinal").show(truncate=60)


def _check(feed: DataFrame, connection: Connection) -> int:
    streamed: dict[str, _Rows] = {"customer": {}, "orders": {}}
    for row in feed.orderBy("commit_lsn", "ordinal").collect():
        table = streamed[row.table]
        if row.before is not None:
            del table[row.before["id"]]
        if row.after is not None:
            table[row.after["id"]] = row.after
    for name, table in streamed.items():
        rows = _query_rows(connection, name)
        if table != rows:
            wrong = {key for key in table.keys() | rows.keys() if table.get(key) != rows.get(key)}
            _say(f"DIFFERENT: table {name} of the server has other rows than the stream, {len(wrong):,} of them")
            return 1
        _say(f"{name}: all {len(rows):,} rows from the stream equal the server's, in every column")
    _say("The stream equals the server's tables.")
    return 0


def _query_rows(connection: Connection, table: str) -> _Rows:
    cursor = connection.execute(f"SELECT * FROM {table} LIMIT 0")
    assert cursor.description is not None
    names = [column.name for column in cursor.description]
    as_text = ", ".join(f"{name}::text" for name in names)
    rows = (dict(zip(names, row, strict=True)) for row in connection.execute(f"SELECT {as_text} FROM {table}"))
    return {row["id"]: row for row in rows}


def _execute(connection: Connection, statements: str) -> None:
    for statement in statements.strip().split(";\n"):
        connection.execute(statement.rstrip(";\n"))


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
