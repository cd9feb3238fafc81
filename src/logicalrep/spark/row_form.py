"""The rows that the options ask for, as the Arrow side of the package takes them."""

from __future__ import annotations

from pyspark.sql.types import StructType

from logicalrep.arrow.row_form import RowForm, TableForm
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.schemas import TYPED_COLUMNS, arrow_schema


def row_form(options: SourceOptions, schema: StructType) -> RowForm:
    """Return the form of rows with these options and this schema, whose last columns are those of the source."""
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
        has_maps=options.values == "map",
        table=table,
    )
