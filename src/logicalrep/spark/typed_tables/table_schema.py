"""The Spark schema of a published table, read from the server."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from logicalrep.arrow.table.rows import SchemaMismatchError, own_columns
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.publications import query_published_relation, query_type_catalog
from logicalrep.postgres.server import Connection
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.schemas import TYPED_COLUMNS
from logicalrep.transactions.relations import TableDescription
from logicalrep.values import TypeCatalog


def query_relation(options: SourceOptions) -> tuple[TableDescription, TypeCatalog]:
    """Return the options' table and its types; raise PreflightError or SchemaMismatchError if something is missing."""
    assert options.table is not None
    with options.connection.connect() as connection:
        relation = query_published_relation(connection, options.table, options.publications)
        if relation is not None and relation.columns:
            return relation, query_type_catalog(connection, options.table)
        check(connection, options.needs)
        raise SchemaMismatchError(
            f"table {options.table} does not exist in this database, or none of its columns is published",
            code="TABLE_MISSING",
        )


def with_catalog(connection: Connection, options: SourceOptions) -> SourceOptions:
    return options if options.table is None else replace(options, catalog=query_type_catalog(connection, options.table))


def relation_schema(
    relation: TableDescription, text_columns: Container[str] = (), catalog: TypeCatalog | None = None
) -> StructType:
    fields = [
        StructField(column.name, from_arrow_type(column.type.arrow_type(for_spark=True), prefer_timestamp_ntz=True))
        for column in own_columns(relation, text_columns, catalog)
    ]
    return StructType([*fields, *TYPED_COLUMNS])
