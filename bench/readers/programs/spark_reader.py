"""Spark with the runtimes of Iceberg and Delta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from bench.readers.examining import run
from bench.readers.programs.jvm import fetch
from bench.readers.reading import SqlReader, Table, sql_literal

_ICEBERG, _DELTA = "1.12.0", "4.4.0"
_ARTIFACTS = (
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{_ICEBERG}",
    f"io.delta:delta-spark_4.1_2.13:{_DELTA}",
    f"io.delta:delta-storage:{_DELTA}",
)
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Each filter is planned and run once: to generate and compile its code takes most of the time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
    "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}


class Spark(SqlReader):
    name = "Spark"
    version = f"{pyspark.__version__}, with Iceberg {_ICEBERG} and Delta {_DELTA}"
    features: Sequence[str] = (*SqlReader.features, "changes")
    batch = 10

    def __init__(self) -> None:
        jars = ",".join(str(fetch(artifact)) for artifact in _ARTIFACTS)
        builder = SparkSession.builder.master("local[1]").config("spark.jars", jars)
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
        self.session = builder.config("spark.sql.catalog.lake.warehouse", "/").getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")

    def open(self, table: Table) -> str:
        source = self.session.read.format(table.format)
        if not table.is_last:
            source = source.option("versionAsOf", table.version)
        source.load(table.uri).createOrReplaceTempView("stored")
        return "stored"

    def keep(self, opened: str, rows: pa.Table) -> str:
        # A relation of literal rows: the planner evaluates filters on it, and has no files.
        self.session.createDataFrame(rows).createOrReplaceTempView("kept")
        return "kept"

    def changes(self, table: Table, columns: Sequence[str]) -> pa.Table:
        feed = self.session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", table.first)
        return feed.option("endingVersion", table.version).load(table.uri).select(list(columns)).toArrow()

    def query(self, statement: str) -> pa.Table:
        return self.session.sql(statement).toArrow()

    def quoted(self, name: str) -> str:
        return f"`{name}`"

    def literal(self, value: Any, type_: pa.DataType) -> str:
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        if isinstance(value, str):
            return f"decode(X'{value.encode().hex()}', 'UTF-8')"
        return sql_literal(value, type_, _SQL_NAMES)


_SQL_NAMES = {"timestamp[us]": "TIMESTAMP_NTZ", "timestamp[us, tz=UTC]": "TIMESTAMP"}


if __name__ == "__main__":
    run(Spark)
