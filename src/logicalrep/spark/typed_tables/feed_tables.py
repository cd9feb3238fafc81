"""One table's typed rows from the change feed, for reading many tables through one slot."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from logicalrep.postgres.server import query_wal_head
from logicalrep.spark.options import FEED_OPTIONS, OptionError, SourceOptions, read_options


def typed_table(
    table: str, *, new_columns: str = "error", text_columns: str = "", **options: str
) -> Callable[[DataFrame], DataFrame]:
    """Return a transformation of the change feed into one table's typed rows, equal to the rows of the option `table`.

    The call reads the columns from the server, once. The query raises TableChangedError if the table is renamed or
    replaced later, except for captures (option `path`).

    Args:
        table: the table as `schema.table`, written as in SQL.
        new_columns: the option of a typed table.
        text_columns: the option of a typed table.
        options: the options of the feed.

    Raises:
        OptionError: an option is invalid.
        SchemaMismatchError: the table does not exist, or a column has the name of one of the source's columns.

    Example:
        >>> orders = feed.transform(typed_table("public.orders", **options))
    """
    from logicalrep.arrow.table.feed_decoder import COLUMNS, OPS
    from logicalrep.spark.typed_tables.table_schema import query_relation, relation_schema
    from logicalrep.spark.typed_tables.typed_feed import FeedTable

    typed = _typed_options(table, new_columns, text_columns, options)
    relation, catalog = query_relation(typed)
    schema = relation_schema(relation, typed.text_columns, catalog)
    seen_at = None
    if typed.path is None:
        # The position is read after the table, so that no change before the read has a later name.
        with typed.connection.connect() as connection:
            seen_at = query_wal_head(connection)
    allows_missing = typed.new_columns == "null"
    reader = FeedTable(relation, typed.text_columns, catalog, allows_missing=allows_missing, seen_at=seen_at)

    def typed_rows(feed: DataFrame) -> DataFrame:
        is_of_table = (f.col("schema") == relation.schema) & (f.col("table") == relation.name)
        if seen_at is not None:
            is_of_table |= f.col("relation_id") == relation.relation_id
        rows = feed.where(is_of_table & f.col("op").isin(*OPS)).select(*COLUMNS)
        # A lambda, not the method: a worker without the package would fail to load the method by name.
        return rows.mapInArrow(lambda batches: reader.batches(batches), schema)

    return typed_rows


def _typed_options(table: str, new_columns: str, text_columns: str, options: dict[str, str]) -> SourceOptions:
    feed = read_options(options)
    of_table = {"table": table, "new_columns": new_columns, "text_columns": text_columns}
    shared = {name: value for name, value in options.items() if name.lower() not in FEED_OPTIONS}
    typed = read_options(shared | of_table)
    assert typed.table is not None
    if feed.tables and typed.table not in feed.tables:
        raise OptionError(f"option 'tables' leaves out {typed.table}: name it there too")
    return typed
