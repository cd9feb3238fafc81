"""One table's typed rows out of the change feed: for who reads many tables by one slot."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from logicalrep.postgres.slots import wal_head
from logicalrep.spark.options import OF_THE_FEED, OptionError, SourceOptions, read_options


def typed_table(
    table: str, *, new_columns: str = "error", text_columns: str = "", **options: str
) -> Callable[[DataFrame], DataFrame]:
    """What makes a table's typed rows of the change feed's: `feed.transform(typed_table("public.orders", **options))`.

    The rows are those that the option `table` would give. `options` are those of the feed, `new_columns` and
    `text_columns` those of a typed table. The columns are read from the server now, and are not read again: OptionError
    and SchemaMismatchError say what keeps them from being read. A table that is renamed or replaced later is a
    TableChangedError; of captures (option `path`) that is not asked.
    """
    from logicalrep.spark.typed_tables.table_schema import relation_on_server, relation_schema
    from logicalrep.spark.typed_tables.typed_feed import COLUMNS, OPS, FeedTable

    typed = _typed_options(table, new_columns, text_columns, options)
    relation, catalog = relation_on_server(typed)
    schema = relation_schema(relation, typed.text_columns, catalog)
    seen_at = None
    if typed.path is None:
        # After the look at the table, so that no change from before the look has a name from after it.
        with typed.connection.connect() as connection:
            seen_at = wal_head(connection)
    allows_missing = typed.new_columns == "null"
    reader = FeedTable(relation, typed.text_columns, catalog, allows_missing=allows_missing, seen_at=seen_at)

    def typed_rows(feed: DataFrame) -> DataFrame:
        is_of_table = (f.col("schema") == relation.schema) & (f.col("table") == relation.name)
        if seen_at is not None:
            is_of_table |= f.col("relation_id") == relation.relation_id
        rows = feed.where(is_of_table & f.col("op").isin(*OPS)).select(*COLUMNS)
        # Not the method itself, which would be loaded by its name before a worker can say that it has no such module.
        return rows.mapInArrow(lambda batches: reader.batches(batches), schema)

    return typed_rows


def _typed_options(table: str, new_columns: str, text_columns: str, options: dict[str, str]) -> SourceOptions:
    feed = read_options(options)
    if feed.values != "map":
        raise OptionError(f"option 'values' is {feed.values!r}: typed rows are made of the feed's maps")
    of_table = {"table": table, "new_columns": new_columns, "text_columns": text_columns}
    typed = read_options({name: value for name, value in options.items() if name.lower() not in OF_THE_FEED} | of_table)
    assert typed.table is not None
    if feed.tables and typed.table not in feed.tables:
        raise OptionError(f"option 'tables' leaves out {typed.table}: name it there too")
    return typed
