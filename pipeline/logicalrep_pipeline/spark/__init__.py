"""A replication slot as a DataFrame: the data source `logicalrep` for Spark's streams and batches.

    from logicalrep_pipeline.spark import register, session

    spark = session()      # a local Spark; or register(spark) for one that is there
    changes = spark.readStream.format("logicalrep").options(dsn=..., slot=..., publication=...).load()

`LogicalRepDataSource` lists the options.
"""

from __future__ import annotations

from logicalrep_pipeline.spark.local import acknowledge, register, session
from logicalrep_pipeline.spark.schemas import feed_schema
from logicalrep_pipeline.spark.source import LogicalRepDataSource

__all__ = ["LogicalRepDataSource", "acknowledge", "feed_schema", "register", "session"]
