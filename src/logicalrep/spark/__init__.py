"""A replication slot as a DataFrame: the data source `logicalrep` for Spark's streams and batches.

    from logicalrep.spark import register, session

    spark = session()      # a local Spark; or register(spark) for one that is there
    changes = spark.readStream.format("logicalrep").options(dsn=..., slot=..., publication=...).load()

`LogicalRepDataSource` lists the options. `snapshot` makes a slot with the rows that were there before its first change.
"""

from __future__ import annotations

from logicalrep.spark.schemas import feed_schema
from logicalrep.spark.sessions import acknowledge, register, session, snapshot
from logicalrep.spark.source import LogicalRepDataSource
from logicalrep.spark.typed_tables.feed_tables import typed_table

__all__ = ["LogicalRepDataSource", "acknowledge", "feed_schema", "register", "session", "snapshot", "typed_table"]
