"""The whole way on one machine: a PostgreSQL 18 and a local Spark are started, a shop does its business, its changes
are streamed, shown, and checked against the server. `python -m logicalrep_pipeline.spark.demo`
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from logicalrep_pipeline.connection import ConnectionSettings
from logicalrep_pipeline.server import LocalServer, find_installation
from logicalrep_pipeline.slots import Connection
from logicalrep_pipeline.spark.local import session

_SHOP = """
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, item text, price numeric(10,2), placed timestamptz);
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE PUBLICATION shop FOR ALL TABLES;
SELECT pg_create_logical_replication_slot('demo', 'pgoutput');
"""

# What a day brings: the server sends what was committed, and never what was rolled back.
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


def main() -> int:
    """Run it; 0 if what was streamed is what the server has."""
    with (
        tempfile.TemporaryDirectory(prefix="logicalrep-demo-") as folder,
        LocalServer(find_installation(18)) as server,
        ConnectionSettings(server.dsn).connect() as connection,
    ):
        _execute(connection, _SHOP)
        return _stream(server.dsn, connection, Path(folder))


def _stream(dsn: str, connection: Connection, folder: Path) -> int:
    _say("PostgreSQL 18 is running; starting Spark ...")
    spark = session("local[2]", **{"spark.driver.memory": "1g"})
    spark.sparkContext.setLogLevel("OFF")
    try:
        options = {"dsn": dsn, "slot": "demo", "publication": "shop"}
        changes = spark.readStream.format("logicalrep").options(**options).load()
        query = (
            changes.writeStream.format("parquet")
            .option("path", str(folder / "changes"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )
        _execute(connection, _BUSINESS)
        _say("A day in the shop is committed; Spark streams it ...")
        query.processAllAvailable()
        query.stop()
        feed = spark.read.parquet(str(folder / "changes"))
        _say(f"{feed.count():,} changes; by table and operation:")
        feed.groupBy("table", "op").count().orderBy("table", "op").show()
        _say("Of the customers:")
        shown = feed.where("table = 'customer'").orderBy("commit_lsn", "ordinal")
        shown.select("op", "before", "after", "commit_timestamp", "xid", "ordinal").show(truncate=60)
        return _check(feed, connection)
    finally:
        spark.stop()


def _check(feed: Any, connection: Connection) -> int:
    """Replay the changes into dictionaries, and compare them with the tables."""
    tables: dict[str, dict[str, dict[str, str]]] = {"customer": {}, "orders": {}}
    for row in feed.orderBy("commit_lsn", "ordinal").collect():
        table = tables[row.table]
        if row.before is not None:
            del table[row.before["id"]]
        if row.after is not None:
            table[row.after["id"]] = row.after
    wrong = 0
    for name, table in tables.items():
        query = f"SELECT to_jsonb({name}) - 'placed' FROM {name}"
        server = {str(row["id"]): row for (row,) in connection.execute(query)}
        streamed = {key: {column: row[column] for column in row if column != "placed"} for key, row in table.items()}
        same = {
            key: {column: None if value is None else str(value) for column, value in row.items()}
            for key, row in server.items()
        }
        equal = _numbers(streamed) == _numbers(same)
        wrong += not equal
        verdict = "equal" if equal else "DIFFERENT"
        _say(f"{name}: {len(streamed):,} rows streamed, {len(server):,} on the server: {verdict}")
    return 1 if wrong else 0


def _numbers(table: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Prices as numbers: JSON has no trailing zeros."""
    return {
        key: {column: float(value) if column == "price" else value for column, value in row.items()}
        for key, row in table.items()
    }


def _execute(connection: Connection, statements: str) -> None:
    for statement in statements.strip().split(";\n"):
        connection.execute(statement.rstrip(";\n"))


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
