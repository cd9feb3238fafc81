"""Replicate the tables of a database to Delta tables, and query a table with DuckDB.

    python examples/replicate_and_query.py "host=localhost dbname=shop user=postgres" lake

The first run loads all rows. A later run applies the changes since the last run. To stop for good,
drop the slot, which retains WAL: logicalrep drop --dsn "host=localhost dbname=shop user=postgres" --to lake
"""

import sys

import duckdb
from deltalake import DeltaTable

import logicalrep

dsn, lake = sys.argv[1:]
logicalrep.replicate(dsn, lake, once=True)

orders = DeltaTable(f"{lake}/public/orders").to_pyarrow_dataset()
print(duckdb.sql("SELECT customer, count(*) AS orders, sum(price) AS total FROM orders GROUP BY ALL ORDER BY ALL"))
