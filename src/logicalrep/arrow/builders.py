"""Makers of record batches of committed changes in the wanted form: in columns, or row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logicalrep.arrow.batch_intake import WholeTransactions
from logicalrep.arrow.batching import Batching
from logicalrep.arrow.feed.rows import Builder, FeedBuilder, parts
from logicalrep.arrow.row_form import RowForm
from logicalrep.arrow.table.rows import ColumnCheck, TypedBuilder
from logicalrep_protocol.columnar import Session
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    from logicalrep.arrow.feed.columnar import ColumnarFeed
    from logicalrep.arrow.table.columnar import ColumnarTyped


def reads_in_columns(form: RowForm, encoding: str) -> bool:
    """Return whether whole transactions of a session can be read in columns."""
    has_columns = form.table is not None or not form.relations
    return has_columns and encoding == "utf-8"


def columnar(decoder: Decoder, form: RowForm, start: Lsn | None, end: Lsn | None) -> ColumnarFeed | ColumnarTyped:
    """Return a maker of record batches from a session's chunks. `start` and `end` are those of `committed_batches`."""
    from logicalrep.arrow.feed.columnar import ColumnarFeed
    from logicalrep.arrow.table.columnar import ColumnarTyped

    session = Session(version=decoder.version, encoding=decoder.encoding, **decoder.facts)
    if form.table is None:
        return ColumnarFeed(form.schema, form.reads, session, start=start, end=end)
    return ColumnarTyped(form.schema, ColumnCheck(form.table), session, start=start, end=end)


def of_whole(transactions: WholeTransactions, feed: ColumnarFeed | ColumnarTyped, rows: int) -> Iterator[Any]:
    """Yield the record batches of whole transactions, of at most `rows` rows."""
    for chunk in Batching(iter(transactions.batches), rows, None):
        for batch in parts(feed.batches(chunk), rows):
            yield batch if transactions.gid is None else _named(batch, transactions.gid)


def _named(batch: Any, gid: str) -> Any:
    """Return the rows with the prepared transaction's name; typed tables have no column for it."""
    place = batch.schema.get_field_index("gid")
    if place < 0:
        return batch
    return batch.set_column(place, batch.schema.field(place), pa.repeat(pa.scalar(gid, pa.string()), batch.num_rows))


def builder_for(form: RowForm, encoding: str = "utf-8") -> Builder:
    """Return a maker of record batches that takes changes one by one."""
    if form.table is not None:
        return TypedBuilder(form.schema, ColumnCheck(form.table), encoding)
    return FeedBuilder(form.schema, form.reads, relations=form.relations, encoding=encoding)
