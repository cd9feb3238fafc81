"""Keep the tables of a database as Delta tables, and query one with DuckDB.

    python examples/replicate_and_query.py "host=localhost dbname=shop user=postgres" lake

The first run loads the rows that are there; each later one applies what has been committed since. To stop for good,
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
