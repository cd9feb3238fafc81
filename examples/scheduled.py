"""Append the changes since the last run to Parquet files, and exit. A line for cron:

    0 * * * *  python examples/scheduled.py "host=localhost dbname=shop user=postgres" out

The first run creates the replication slot `scheduled`, and later runs read all changes since. Between runs the server
retains the WAL. To stop for good: logicalrep slot drop scheduled --dsn "host=localhost dbname=shop user=postgres"
"""

import sys

from logicalrep.spark import run_available_now, session

dsn, folder = sys.argv[1:]
options = {"dsn": dsn, "slot": "scheduled", "publication": "shop", "table": "public.orders"}
changes = session().readStream.format("logicalrep").options(**options, create_slot="true").load()
writer = changes.writeStream.format("parquet").option("path", f"{folder}/changes")
query = run_available_now(writer.option("checkpointLocation", f"{folder}/checkpoint"), **options)
print(f"{sum(progress['numInputRows'] for progress in query.recentProgress)} changes")
