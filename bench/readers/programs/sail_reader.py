"""Sail, through Spark Connect."""

from __future__ import annotations

import pysail
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

from bench.readers.examining import run
from bench.readers.programs.spark_reader import Spark
from bench.readers.reading import SqlReader


class Sail(Spark):
    name, version = "Sail", pysail.__version__
    features = SqlReader.features
    batch = 5

    def __init__(self) -> None:
        self.server = SparkConnectServer()
        self.server.start(background=True)
        host, port = self.server.listening_address
        self.session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
        self.session.conf.set("spark.sql.session.timeZone", "UTC")

    def close(self) -> None:
        # The server's threads keep the process alive.
        self.session.stop()
        self.server.stop()


if __name__ == "__main__":
    run(Sail)
