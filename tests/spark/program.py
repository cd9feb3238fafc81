"""A program that streams a slot into Parquet until it is killed: `python -m tests.spark.program '{"dsn": ...}'`."""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Run the stream that the argument describes, in a process group of its own."""
    settings = json.loads(sys.argv[1])
    os.setpgid(0, 0)
    from logicalrep.spark import session

    spark = session("local[2]", **{"spark.driver.memory": "700m"})
    spark.sparkContext.setLogLevel("OFF")
    writer = (
        spark.readStream.format("logicalrep")
        .options(**settings["options"])
        .load()
        .writeStream.format("parquet")
        .option("path", settings["folder"] + "/out")
        .option("checkpointLocation", settings["folder"] + "/checkpoint")
    )
    if settings["available_now"]:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    print("started", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main()
