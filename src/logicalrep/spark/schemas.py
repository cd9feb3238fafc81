"""The columns of what the source gives, as Spark's types, and the Arrow types that Spark takes for them."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from logicalrep.arrow.table.rows import CHANGE_COLUMNS

_TYPES = (StringType(), LongType(), TimestampType(), LongType(), ArrayType(StringType(), containsNull=False))
TYPED_COLUMNS = tuple(
    StructField(name, type_, nullable=False) for name, type_ in zip(CHANGE_COLUMNS, _TYPES, strict=True)
)
"""What stands behind the columns of a typed table."""


def feed_schema(values: Literal["map", "variant"] = "map") -> StructType:
    """The change feed's columns; `values` says what the rows in `before` and `after` are.

    What no row lacks is said to be never null, which spares Spark a look at each value.
    """
    row: DataType = VariantType() if values == "variant" else MapType(StringType(), StringType())
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


def arrow_schema(schema: StructType) -> Any:
    """The pyarrow.Schema that Spark expects of a record batch: from 4.2 on it takes no other."""
    parameters = inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if "timezone" in parameters else to_arrow_schema(schema)
