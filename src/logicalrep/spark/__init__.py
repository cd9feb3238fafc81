"""Spark's data source `logicalrep`: the changes of a replication slot as a DataFrame, for streams and batches.

    from logicalrep.spark import register, session

    spark = session()      # a local Spark; or register(spark) for an existing session
    changes = spark.readStream.format("logicalrep").options(dsn=..., slot=..., publication=...).load()

docs/reference/spark-options.md lists the options. `snapshot` creates a slot with a snapshot of the rows before its
first change, and `table` reads a Delta table that `logicalrep replicate` writes.
"""

from __future__ import annotations

from logicalrep.spark.frames.delta_tables import table
from logicalrep.spark.schemas import feed_schema
from logicalrep.spark.sessions import acknowledge, register, run_available_now, session, snapshot
from logicalrep.spark.source import LogicalRepDataSource
from logicalrep.spark.typed_tables.feed_tables import typed_table

__all__ = [
    "LogicalRepDataSource",
    "acknowledge",
    "feed_schema",
    "register",
    "run_available_now",
    "session",
    "snapshot",
    "table",
    "typed_table",
]
