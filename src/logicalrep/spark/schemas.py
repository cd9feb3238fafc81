"""The columns of the source's rows in Spark's types, and the Arrow types that Spark expects for them."""

from __future__ import annotations

import inspect

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType, TimestampType

from logicalrep.arrow.table.rows import CHANGE_COLUMNS

_TYPES = (StringType(), LongType(), TimestampType(), LongType(), ArrayType(StringType(), containsNull=False))
TYPED_COLUMNS = tuple(
    StructField(name, type_, nullable=False) for name, type_ in zip(CHANGE_COLUMNS, _TYPES, strict=True)
)
"""The columns that follow those of a typed table."""


def feed_schema() -> StructType:
    """Return the change feed's schema.

    Columns that every row has are not nullable, which spares Spark a check of each value.

    Example:
        >>> spark.read.schema(feed_schema()).parquet("changes")
    """
    row = MapType(StringType(), StringType())
    names = ArrayType(StringType(), containsNull=False)
    return StructType(
        [
            StructField("op", StringType(), nullable=False),
            StructField("schema", StringType()),
            StructField("table", StringType()),
            StructField("relation_id", LongType()),
            StructField("before", row),
            StructField("after", row),
            StructField("key", names, nullable=False),
            StructField("unchanged", names, nullable=False),
            StructField("lsn", LongType()),
            StructField("commit_lsn", LongType()),
            StructField("commit_timestamp", TimestampType()),
            StructField("xid", LongType()),
            StructField("ordinal", LongType()),
            StructField("origin", StringType()),
            StructField("gid", StringType()),
        ]
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the pyarrow.Schema of record batches for Spark, which from 4.2 on accepts no other."""
    parameters = inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if "timezone" in parameters else to_arrow_schema(schema)
