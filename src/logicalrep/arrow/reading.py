"""From the messages of a session, or of a part of a slot, to record batches in the columns that were asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.types import StructType

from logicalrep import Decoder, Lsn
from logicalrep.scalars import lsn_of
from logicalrep_pipeline.assembler import Assembler
from logicalrep_pipeline.block_intake import BlockIntake, WholeTransactions
from logicalrep_pipeline.blocks import Block, blocks_of
from logicalrep_pipeline.change_feed import events as assembled_events
from logicalrep_pipeline.positions import Position
from logicalrep_pipeline.spark.builders import builder_for, columnar, of_whole, reads_in_columns
from logicalrep_pipeline.spark.chunks import Chunks
from logicalrep_pipeline.spark.feed import batches, parts
from logicalrep_pipeline.spark.options import SourceOptions
from logicalrep_pipeline.spark.runs import UnsupportedError
from logicalrep_pipeline.transactions import Event, Transaction

if TYPE_CHECKING:
    from logicalrep_pipeline.spark.columnar_feed import ColumnarFeed
    from logicalrep_pipeline.spark.columnar_typed import ColumnarTyped

# A capture is there at once, so more of it is read in the same calls. A slot's first rows are not to wait for that.
_RECORD_BATCHES_OF_A_CAPTURE = 3
_STREAM_ABORT = ord("A")


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

    A message outside of transactions belongs to where its record begins. It tells only where that ends: one that ends
    at `start` or before is left out, for the end of a part the server sees to it.

    In columns as long as transactions come whole; from there on all is assembled, and a part read row by row. A capture
    may end within a transaction: one that does is left out.
    """
    if reads_in_columns(options, decoder.encoding):
        yield from in_columns(blocks, decoder, options, schema, start, end, is_capture=is_capture)
    else:
        yield from row_by_row(chain.from_iterable(blocks), decoder, options, schema, start, end)


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
        events: Iterable[Event] = assembled_events(with_lsns, decoder, assembler)
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
        unread = yield from _read(chunk, feed, rows, decoder)
        if unread is not None:
            chunks.put_back(unread)
            break
    rest = chunks.rest()
    first = next(rest, None)
    if first is None:
        return
    if start is None and end is None:
        yield from assembled(chain(feed.preamble(), (first,), rest), decoder, options, schema)
    else:
        messages = chain(feed.preamble(), first, chain.from_iterable(rest))
        yield from row_by_row(messages, decoder, options, schema, start, end)


def _read(
    chunk: Block, feed: ColumnarFeed | ColumnarTyped, rows: int, decoder: Decoder
) -> Generator[Any, None, Block | None]:
    """The record batches of a chunk; returns the part from where on all has to be read row by row, if there is one."""
    while len(chunk):
        try:
            yield from parts(feed.batches(chunk), rows)
            return None
        except UnsupportedError as error:
            chunk = chunk[error.index :]
        if chunk.tags[0] != _STREAM_ABORT:
            return chunk
        # Before anything is streamed, there is nothing to it but its bytes.
        decoder.decode(chunk.data(0))
        chunk = chunk[1:]
    return None


def assembled(
    messages: Iterable[tuple[int, bytes] | Block], decoder: Decoder, options: SourceOptions, schema: StructType
) -> Iterator[Any]:
    """As `record_batches`, of all, in columns where a transaction has enough to pay for them."""
    builder, feed = builder_for(options, schema), columnar(Decoder(1), options, schema, None, None)
    with Assembler(memory_limit=options.memory_limit) as assembler:
        intake = BlockIntake(assembler, options.memory_limit)
        intake.connect(decoder)
        found = chain.from_iterable(intake.take_block(block) for block in blocks_of(messages))
        for are_whole, group in groupby(found, lambda item: isinstance(item, WholeTransactions)):
            if are_whole:
                for transactions in cast(Iterator[WholeTransactions], group):
                    yield from of_whole(transactions, feed, options.rows_per_record_batch)
            else:
                yield from batches(cast(Iterator[Event], group), builder, rows=options.rows_per_record_batch)


def before(events: Iterable[Event], end: Lsn) -> Iterator[Event]:
    """Without the transactions that committed at or after a position."""
    for event in events:
        if isinstance(event, Transaction) and event.commit_lsn >= end:
            event.close()
        else:
            yield event
