"""Keep the committed changes of a table as Parquet files, and count them with Polars; no Spark is needed.

    python examples/changes_to_polars.py "host=localhost dbname=shop user=postgres" changes

The first run makes the replication slot `polars`; each later one adds what has been committed since. To stop for good,
drop the slot, which retains WAL: logicalrep slot drop polars --dsn "host=localhost dbname=shop user=postgres"
"""

import sys
from pathlib import Path

import polars

import logicalrep

dsn, folder = sys.argv[1], Path(sys.argv[2])
folder.mkdir(exist_ok=True)
changes = logicalrep.stream(dsn, slot="polars", publication="shop", create_slot=True, follow=False)
for batch in changes.batches("public.orders"):
    rows = polars.DataFrame(batch)
    # The server is told that a batch is finished when the loop asks for the next one, so the file is there by then.
    rows.write_parquet(folder / f"{rows['_commit_version'][0]}-{rows['_ordinal'][0]}.parquet")

if any(folder.glob("*.parquet")):
    # After a crash the same changes may come again; position and kind tell which ones are there already.
    log = polars.read_parquet(folder / "*.parquet").unique(["_commit_version", "_ordinal", "_change_type"])
    print(log.group_by("customer", "_change_type").agg(polars.len(), polars.sum("price")).sort("customer"))
