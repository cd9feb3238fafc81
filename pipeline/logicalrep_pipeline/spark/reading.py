"""From the messages of a session, or of a part of a slot, to record batches in the columns that were asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from logicalrep import Decoder, Lsn
from logicalrep.scalars import lsn_of
from logicalrep_pipeline.assembler import Assembler
from logicalrep_pipeline.change_feed import events as assembled
from logicalrep_pipeline.positions import Position
from logicalrep_pipeline.spark.feed import Builder, FeedBuilder, batches
from logicalrep_pipeline.spark.options import SourceOptions
from logicalrep_pipeline.spark.schemas import arrow_schema
from logicalrep_pipeline.spark.typed import TypedBuilder
from logicalrep_pipeline.transactions import Event, NonTransactionalMessage, Transaction

if TYPE_CHECKING:
    from logicalrep_pipeline.spark.columnar_feed import ColumnarFeed
    from logicalrep_pipeline.spark.columnar_typed import ColumnarTyped

_CHUNK_BYTES = 16 << 20


def record_batches(
    messages: Iterable[tuple[int, bytes]],
    decoder: Decoder,
    options: SourceOptions,
    schema: StructType,
    *,
    start: Lsn | None = None,
    end: Lsn | None = None,
    may_end_early: bool = False,
) -> Iterator[Any]:
    """Record batches of what committed at or after `start` and before `end`, of all where they are None.

    In columns as long as that goes, row by row from there on. `may_end_early` says whether the messages may end within
    a transaction, as captures may: such a one is left out.
    """
    has_columns = options.table is not None or (options.values == "map" and not options.relations)
    if has_columns and decoder.encoding == "utf-8" and has_columnar():
        yield from in_columns(iter(messages), decoder, options, schema, start, end, may_end_early=may_end_early)
    else:
        yield from row_by_row(messages, decoder, options, schema, start, end)


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
    messages: Iterator[tuple[int, bytes]],
    decoder: Decoder,
    options: SourceOptions,
    schema: StructType,
    start: Lsn | None,
    end: Lsn | None,
    *,
    may_end_early: bool = True,
) -> Iterator[Any]:
    """As `record_batches`, in columns."""
    from logicalrep_pipeline.spark.runs import UnsupportedError

    feed = _columnar(decoder, options, schema, start, end)
    chunks = _Chunks(messages, options.rows_per_record_batch, options.memory_limit if may_end_early else None)
    for lsns, data in chunks:
        try:
            yield from feed.batches(lsns, data)
        except UnsupportedError as place:
            chunks.put_back(lsns[place.index :], data[place.index :])
            break
    rest = list(islice(chunks.rest(), 1))
    if rest:
        left = chain(feed.preamble(), rest, chunks.rest())
        yield from row_by_row(left, decoder, options, schema, start, end)


def _columnar(
    decoder: Decoder, options: SourceOptions, schema: StructType, start: Lsn | None, end: Lsn | None
) -> ColumnarFeed | ColumnarTyped:
    from logicalrep.columnar import Session
    from logicalrep_pipeline.spark.columnar_feed import ColumnarFeed
    from logicalrep_pipeline.spark.columnar_typed import ColumnarTyped

    session = Session(
        version=decoder.version, parallel=decoder.parallel, two_phase=decoder.two_phase, encoding=decoder.encoding
    )
    arrow = arrow_schema(schema)
    if options.table is None:
        return ColumnarFeed(arrow, options.reads, session, start=start, end=end)
    return ColumnarTyped(schema, arrow, options.table, session, new_columns=options.new_columns, start=start, end=end)


class _Chunks:
    """The LSNs and the bytes of so many messages at a time, of fewer where they are large.

    With a limit, chunks end at the end of a transaction, and they stop before one that takes more bytes than that, and
    before one that does not end: these have to be read row by row, as nothing of them may be seen before their end.
    """

    def __init__(self, messages: Iterator[tuple[int, bytes]], count: int, limit: int | None) -> None:
        self._messages = messages
        self._count = count
        self._limit = limit
        self._left: Iterator[tuple[int, bytes]] = iter(())

    def put_back(self, lsns: list[int], data: list[bytes]) -> None:
        """Messages of a chunk that were not read after all; they come first in `rest`."""
        self._left = chain(list(zip(lsns, data, strict=True)), self._left)

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """What no chunk had."""
        return chain(self._left, self._messages)

    def __iter__(self) -> Iterator[tuple[list[int], list[bytes]]]:
        lsns: list[int] = []
        data: list[bytes] = []
        size, count = 0, self._count
        for lsn, message in self._messages:
            lsns.append(lsn)
            data.append(message)
            size += len(message)
            if len(data) < count and size <= _CHUNK_BYTES:
                continue
            whole = len(data) if self._limit is None else _end_of_transactions(data)
            if whole:
                self._left = zip(lsns[whole:], data[whole:], strict=True)
                yield lsns[:whole], data[:whole]
                lsns, data = [], []
                for lsn, message in self._left:
                    lsns.append(lsn)
                    data.append(message)
                size, count = sum(map(len, data)), self._count
            elif self._limit is not None and size > self._limit:
                break
            else:
                # The transaction is larger than a chunk: look again when there is twice as much.
                count = max(count, 2 * len(data))
        whole = len(data) if self._limit is None else _end_of_transactions(data)
        self._left = zip(lsns[whole:], data[whole:], strict=True)
        if whole:
            yield lsns[:whole], data[:whole]


def _end_of_transactions(data: list[bytes]) -> int:
    """How many of the messages there are up to the last Commit."""
    for index in range(len(data) - 1, -1, -1):
        if data[index][:1] == b"C":
            return index + 1
    return 0


@cache
def has_columnar() -> bool:
    """Whether the columnar decoder can be used, which needs numpy; with numba it is fast."""
    return importlib.util.find_spec("numpy") is not None


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
