"""From the messages of a session, or of a part of a slot, to record batches in the columns that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from logicalrep import Decoder, Lsn
from logicalrep.columnar import Session, default_backend
from logicalrep.scalars import lsn_of
from logicalrep_pipeline.assembler import Assembler
from logicalrep_pipeline.blocks import Block
from logicalrep_pipeline.change_feed import events as assembled
from logicalrep_pipeline.positions import Position
from logicalrep_pipeline.spark.chunks import Chunks
from logicalrep_pipeline.spark.feed import Builder, FeedBuilder, batches
from logicalrep_pipeline.spark.options import SourceOptions
from logicalrep_pipeline.spark.runs import UnsupportedError
from logicalrep_pipeline.spark.schemas import arrow_schema
from logicalrep_pipeline.spark.typed import TypedBuilder
from logicalrep_pipeline.transactions import Event, NonTransactionalMessage, Transaction

if TYPE_CHECKING:
    from logicalrep_pipeline.spark.columnar_feed import ColumnarFeed
    from logicalrep_pipeline.spark.columnar_typed import ColumnarTyped

# A capture is there at once, so more of it is read in the same calls. A slot's first rows are not to wait for that.
_RECORD_BATCHES_OF_A_CAPTURE = 3


def record_batches(
    blocks: Iterator[Block],
    decoder: Decoder,
    options: SourceOptions,
    schema: StructType,
    *,
    start: Lsn | None = None,
    end: Lsn | None = None,
    is_capture: bool = False,
) -> Iterator[Any]:
    """Record batches of what committed at or after `start` and before `end`, of all where they are None.

    In columns as long as that goes, row by row from there on. A capture may end within a transaction: one that does is
    left out.
    """
    if reads_in_columns(options, decoder.encoding):
        yield from in_columns(blocks, decoder, options, schema, start, end, is_capture=is_capture)
    else:
        yield from row_by_row(chain.from_iterable(blocks), decoder, options, schema, start, end)


def reads_in_columns(options: SourceOptions, encoding: str) -> bool:
    """Whether whole transactions of a session can be read in columns."""
    has_columns = options.table is not None or (options.values == "map" and not options.relations)
    return has_columns and encoding == "utf-8" and default_backend() == "numba"


def row_by_row(
    messages: Iterable[tuple[int, bytes]],
    decoder: Decoder,
    options: SourceOptions,
    schema: StructType,
    start: Lsn | None,
    end: Lsn | None,
) -> Iterator[Any]:
    after = None if start is None else Position(delivered=start, acknowledged=start)
    with Assembler(after=after, memory_limit=options.memory_limit) as assembler:
        with_lsns = ((lsn_of(lsn), data) for lsn, data in messages)
        events: Iterable[Event] = assembled(with_lsns, decoder, assembler)
        if end is not None:
            events = before(events, end)
        yield from batches(events, builder_for(options, schema, decoder.encoding), rows=options.rows_per_record_batch)


def in_columns(
    blocks: Iterator[Block],
    decoder: Decoder,
    options: SourceOptions,
    schema: StructType,
    start: Lsn | None,
    end: Lsn | None,
    *,
    is_capture: bool = True,
) -> Iterator[Any]:
    """As `record_batches`, in columns."""
    feed = columnar(decoder, options, schema, start, end)
    rows = options.rows_per_record_batch
    if is_capture:
        chunks = Chunks(blocks, _RECORD_BATCHES_OF_A_CAPTURE * rows, options.memory_limit)
    else:
        chunks = Chunks(blocks, rows, None)
    for chunk in chunks:
        try:
            yield from parts(feed.batches(chunk), rows)
        except UnsupportedError as error:
            chunks.put_back(chunk[error.index :])
            break
    messages = chain.from_iterable(chunks.rest())
    first = next(messages, None)
    if first is not None:
        left = chain(feed.preamble(), (first,), messages)
        yield from row_by_row(left, decoder, options, schema, start, end)


def parts(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in record batches of so many at most, as a chunk may have more: of several, or old and new ones."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


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
    return ColumnarTyped(schema, arrow, options.table, session, new_columns=options.new_columns, start=start, end=end)


def builder_for(options: SourceOptions, schema: StructType, encoding: str = "utf-8") -> Builder:
    """What makes the record batches of a stream or a read with these options."""
    if options.table is not None:
        return TypedBuilder(
            schema, arrow_schema(schema), options.table, new_columns=options.new_columns, encoding=encoding
        )
    return FeedBuilder(arrow_schema(schema), options.reads, relations=options.relations, encoding=encoding)


def before(events: Iterable[Event], end: Lsn) -> Iterator[Event]:
    """Those that took effect before a position."""
    for event in events:
        if isinstance(event, Transaction):
            if event.commit_lsn >= end:
                event.close()
                continue
        elif isinstance(event, NonTransactionalMessage) and event.message.message_lsn >= end:
            continue
        yield event
