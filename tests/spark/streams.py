"""Streams for tests, with the test's database, a checkpoint and a Parquet sink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from logicalrep.postgres.publications import query_published_relation, query_type_catalog
from logicalrep.postgres.server import Connection
from logicalrep.spark import feed_schema
from logicalrep.spark.typed_tables.table_schema import relation_schema
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database

EACH_MODE = ["auto", *(pytest.param(mode, marks=pytest.mark.thorough) for mode in ("peek", "walsender"))]
"""The modes for which tests are repeated; `make test` has the default, which reads in both ways."""


def table_schema(
    connection: Connection, table: TableName, publications: tuple[str, ...], text_columns: Sequence[str] = ()
) -> StructType:
    """Return the Spark schema of a published table, read from the server."""
    relation = query_published_relation(connection, table, publications)
    assert relation is not None
    return relation_schema(relation, text_columns, query_type_catalog(connection, table))


class Stream:
    """A stream with a checkpoint and a Parquet sink, which is written exactly once."""

    def __init__(self, spark: Any, db: Database, folder: Path, **options: str) -> None:
        self.spark = spark
        self.folder = folder
        self.options = {
            "dsn": db.dsn,
            "slot": "spark",
            "publication": "p",
            "poll_interval": "0.05",
            **options,
        }
        if options.get("mode") == "walsender":
            self.options.setdefault("spool", str(folder / "spool"))

    def load(self, **options: str) -> Any:
        return self.spark.readStream.format("logicalrep").options(**(self.options | options)).load()

    def start(self, **options: str) -> Any:
        """Return a running query with the default trigger."""
        return self.writer(self.load(**options)).start()

    def run(self, **options: str) -> Any:
        """Return a query that has read everything available."""
        query = self.writer(self.load(**options)).trigger(availableNow=True).start()
        if not query.awaitTermination(120):
            query.stop()
            raise TimeoutError("the query does not end")
        return query

    def frame(self) -> Any:
        schema = self.load().schema if "table" in self.options else feed_schema()
        return self.spark.read.schema(schema).parquet(str(self.folder / "out"))

    def writer(self, frame: Any) -> Any:
        """Return the writer of a frame to the stream's sink."""
        (self.folder / "out").mkdir(parents=True, exist_ok=True)
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / "out"))
        return writer.option("checkpointLocation", str(self.folder / "checkpoint"))
