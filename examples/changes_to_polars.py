"""Write the committed changes of a table into Parquet files, and count the changes with Polars, without Spark.

    python examples/changes_to_polars.py "host=localhost dbname=shop user=postgres" changes

The first run creates the replication slot `polars`. A later run adds the changes since the last run. To stop for good,
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
    # The stream acknowledges a batch when the loop asks for the next batch: by then the file exists.
    rows.write_parquet(folder / f"{rows['_commit_version'][0]}-{rows['_ordinal'][0]}.parquet")

if any(folder.glob("*.parquet")):
    # After a crash the stream may repeat changes: position and kind identify a change.
    log = polars.read_parquet(folder / "*.parquet").unique(["_commit_version", "_ordinal", "_change_type"])
    print(log.group_by("customer", "_change_type").agg(polars.len(), polars.sum("price")).sort("customer"))
