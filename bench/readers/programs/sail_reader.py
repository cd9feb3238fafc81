"""Sail, through Spark Connect."""

from __future__ import annotations

import pysail
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

from bench.readers.examining import run
from bench.readers.programs.spark_reader import Spark


class Sail(Spark):
    name, version = "Sail", pysail.__version__
    batch = 5

    def __init__(self) -> None:
        self.server = SparkConnectServer()
        self.server.start(background=True)
        host, port = self.server.listening_address
        self.session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
        self.session.conf.set("spark.sql.session.timeZone", "UTC")


if __name__ == "__main__":
    run(Sail)
