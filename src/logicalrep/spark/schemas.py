"""The columns of the source's rows: their Spark types, the Arrow types that Spark expects, and their form."""

from __future__ import annotations

import inspect

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType, TimestampType

from logicalrep.arrow.row_form import RowForm, TableForm
from logicalrep.arrow.table.rows import CHANGE_COLUMNS
from logicalrep.spark.options import SourceOptions

_TYPES = (StringType(), LongType(), TimestampType(), LongType(), ArrayType(StringType(), containsNull=False))
TYPED_COLUMNS = tuple(
    StructField(name, type_, nullable=False) for name, type_ in zip(CHANGE_COLUMNS, _TYPES, strict=True)
)


def feed_schema() -> StructType:
    """Return the change feed's schema.

    Columns that every row has are not nullable, which spares Spark a check of each value.

    Example:
        >>> feed_schema().names[:3]
        ['op', 'schema', 'table']
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


def row_form(options: SourceOptions, schema: StructType) -> RowForm:
    """Return the form of rows for options and a schema; a typed table's schema ends with the source's columns."""
    table = None
    if options.table is not None:
        own = schema.fields[: -len(TYPED_COLUMNS)]
        table = TableForm(
            table=options.table,
            column_types={field.name: field.dataType.simpleString() for field in own},
            new_columns=options.new_columns,
            text_columns=options.text_columns,
            catalog=options.catalog,
            relation_id=options.relation_id,
        )
    return RowForm(
        schema=arrow_schema(schema),
        rows_per_record_batch=options.rows_per_record_batch,
        memory_limit=options.memory_limit,
        reads=options.reads,
        relations=options.relations,
        table=table,
    )
