"""Queries of the Spark source, called as Spark calls them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructType

from logicalrep.spark import feed_schema
from logicalrep.spark.options import read_options
from logicalrep.spark.source import LogicalRepDataSource
from tests.postgres.servers import Database

MODES = ("auto", "peek", "walsender")


class Query:
    """A query's state in Spark, whose readers are replaced."""

    def __init__(self, db: Database, folder: Path, schema: StructType | None = None, **options: str) -> None:
        given = {"mode": "walsender", "dsn": db.dsn, "slot": "s", "publication": "p"} | options
        if given["mode"] == "walsender":
            given.setdefault("spool", str(folder))
        self.options, self._schema = read_options(given), schema or feed_schema()
        self.reader = self._new()
        self.start: Any = self.reader.initialOffset()
        self.end = self.start

    def _new(self) -> Any:
        source = LogicalRepDataSource({})
        vars(source)["read_source_options"] = lambda: self.options
        return source.streamReader(self._schema)

    def plan(self, seconds: float = 60) -> list[dict[str, Any]]:
        """Return the rows of the next batch, which is not committed."""
        deadline = time.monotonic() + seconds
        while self.end["lsn"] == self.start["lsn"]:
            assert time.monotonic() < deadline
            self.end = self.reader.latestOffset(self.start, None)
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the planned batch."""
        parts = self.reader.partitions(self.start, self.end)
        return [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]

    def commit(self) -> None:
        self.start = self.end
        self.reader.commit(self.end)

    def restart(self, *, reopen: bool = True, **options: Any) -> None:
        """End the reader as a kill does, and start another one if `reopen`, with changed options."""
        receiver = getattr(getattr(self.reader, "walsender", self.reader), "receiver", None)
        if receiver is not None:
            # A killed reader acknowledges nothing.
            receiver.replication.acknowledge = lambda lsn: None
        self.reader.stop()
        self.options = replace(self.options, **options)
        if reopen:
            self.reader = self._new()


def new_values(rows: list[dict[str, Any]]) -> list[str]:
    return [dict(row["after"])["id"] for row in rows]


def create_table_and_slot(db: Database) -> None:
    """Create the table `t`, the publication `p` and the slot `s`."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    db.rows("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
