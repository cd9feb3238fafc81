"""Write the committed changes of a table into Parquet files, as a Spark stream that runs until Ctrl-C.

    python examples/stream_to_parquet.py "host=localhost dbname=shop user=postgres" out

The stream resumes where it stopped, and writes each change once, also after a kill: Spark lists the valid files in the
folder, so read the folder with Spark. To stop for good, drop the slot, which retains WAL:
logicalrep slot drop parquet --dsn "host=localhost dbname=shop user=postgres"
"""

import sys

from logicalrep.spark import session

dsn, folder = sys.argv[1:]
options = {"dsn": dsn, "slot": "parquet", "publication": "shop", "table": "public.orders"}
changes = session().readStream.format("logicalrep").options(**options, create_slot="true").load()
writer = changes.writeStream.format("parquet").option("path", f"{folder}/changes")
# One batch per minute, as each batch writes a file.
query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(processingTime="1 minute").start()
query.awaitTermination()
