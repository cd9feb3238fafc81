"""Load the changes of a replicated table into DuckDB with dlt: a run adds each change since the last run once.

logicalrep replicate --dsn "host=localhost dbname=shop user=postgres" --to lake --append --once
python examples/dlt_changes.py lake
"""

import sys

import dlt

import logicalrep

CHANGE = ("_commit_version", "_ordinal", "_change_type")
LOADED = dlt.sources.incremental("_commit_version", initial_value=0, primary_key=CHANGE)


@dlt.resource(name="order_changes", primary_key=CHANGE, write_disposition="append")
def order_changes(lake, version=LOADED):
    """The changes from the last loaded commit on, of which dlt drops the loaded ones."""
    changes = logicalrep.read(lake, "public.orders~changes")
    yield changes.select(where=[("_commit_version", ">=", version.last_value)]).arrow()


pipeline = dlt.pipeline("orders", destination="duckdb", dataset_name="shop", pipelines_dir="dlt")
pipeline.run(order_changes(sys.argv[1]))
with pipeline.sql_client() as client:
    counts = client.execute_sql("SELECT _change_type, count(*) FROM order_changes GROUP BY 1 ORDER BY 1")
    for change_type, count in counts:
        print(change_type, count)
