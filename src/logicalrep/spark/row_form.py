"""The form of rows that the options select, for the package `logicalrep.arrow`."""

from __future__ import annotations

from pyspark.sql.types import StructType

from logicalrep.arrow.row_form import RowForm, TableForm
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.schemas import TYPED_COLUMNS, arrow_schema


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
