"""What makes record batches of committed changes with given options: in columns where that goes, else row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from logicalrep import Decoder, Lsn
from logicalrep.columnar import Session, default_backend
from logicalrep_pipeline.block_intake import WholeTransactions
from logicalrep_pipeline.spark.chunks import Chunks
from logicalrep_pipeline.spark.feed import Builder, FeedBuilder, parts
from logicalrep_pipeline.spark.options import SourceOptions
from logicalrep_pipeline.spark.schemas import arrow_schema
from logicalrep_pipeline.spark.typed import ColumnCheck, TypedBuilder
from logicalrep_pipeline.table_names import TableName

if TYPE_CHECKING:
    from logicalrep_pipeline.spark.columnar_feed import ColumnarFeed
    from logicalrep_pipeline.spark.columnar_typed import ColumnarTyped


def reads_in_columns(options: SourceOptions, encoding: str) -> bool:
    """Whether whole transactions of a session can be read in columns."""
    has_columns = options.table is not None or (options.values == "map" and not options.relations)
    return has_columns and encoding == "utf-8" and default_backend() == "numba"


def columnar(
    decoder: Decoder, options: SourceOptions, schema: StructType, start: Lsn | None, end: Lsn | None
) -> ColumnarFeed | ColumnarTyped:
    """What makes record batches of the chunks of a session; of what commits within the range, as `record_batches`."""
    from logicalrep_pipeline.spark.columnar_feed import ColumnarFeed
    from logicalrep_pipeline.spark.columnar_typed import ColumnarTyped

    session = Session(
        version=decoder.version, parallel=decoder.parallel, two_phase=decoder.two_phase, encoding=decoder.encoding
    )
    arrow = arrow_schema(schema)
    if options.table is None:
        return ColumnarFeed(arrow, options.reads, session, start=start, end=end)
    return ColumnarTyped(arrow, _check(options, options.table, schema), session, start=start, end=end)


def of_whole(transactions: WholeTransactions, feed: ColumnarFeed | ColumnarTyped, rows: int) -> Iterator[Any]:
    """The record batches of whole transactions, of so many rows at most."""
    for chunk in Chunks(iter(transactions.blocks), rows, None):
        for batch in parts(feed.batches(chunk), rows):
            yield batch if transactions.gid is None else _named(batch, transactions.gid)


def _named(batch: Any, gid: str) -> Any:
    """The rows with the name of the prepared transaction; typed tables have no column for it."""
    place = batch.schema.get_field_index("gid")
    if place < 0:
        return batch
    return batch.set_column(place, batch.schema.field(place), pa.repeat(pa.scalar(gid, pa.string()), batch.num_rows))


def builder_for(options: SourceOptions, schema: StructType, encoding: str = "utf-8") -> Builder:
    """What makes the record batches of a stream or a read with these options."""
    if options.table is not None:
        return TypedBuilder(arrow_schema(schema), _check(options, options.table, schema), encoding)
    return FeedBuilder(arrow_schema(schema), options.reads, relations=options.relations, encoding=encoding)


def _check(options: SourceOptions, table: TableName, schema: StructType) -> ColumnCheck:
    return ColumnCheck(
        schema,
        table,
        options.new_columns,
        options.text_columns,
        catalog=options.catalog,
        relation_id=options.relation_id,
    )
