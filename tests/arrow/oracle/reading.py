"""A session's messages to record batches, change by change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.arrow.row_form import RowForm
from logicalrep.arrow.table.rows import ColumnCheck
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import events as assembled_events
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Event, Transaction
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn, lsn_of
from tests.arrow.oracle.feed_builder import Builder, FeedBuilder, batches
from tests.arrow.oracle.typed_builder import TypedBuilder


def builder_for(form: RowForm, encoding: str = "utf-8") -> Builder:
    """Return a maker of record batches that takes changes one by one."""
    if form.table is not None:
        return TypedBuilder(form.schema, ColumnCheck(form.table), encoding)
    return FeedBuilder(form.schema, form.reads, relations=form.relations, encoding=encoding)


def row_by_row(
    messages: Iterable[tuple[int, bytes] | MessageBatch],
    decoder: Decoder,
    form: RowForm,
    *,
    start: Lsn | None = None,
    end: Lsn | None = None,
) -> Iterator[Any]:
    """Yield what `logicalrep.arrow.committed_batches` yields, in record batches of other sizes."""
    after = None if start is None else ResumeToken(delivered=start, acknowledged=start)
    with Assembler(after=after, memory_limit=form.memory_limit) as assembler:
        all_events = assembled_events(_one_by_one(messages), decoder, assembler)
        events = all_events if end is None else _before(all_events, end)
        yield from batches(events, builder_for(form, decoder.encoding), rows=form.rows_per_record_batch)


def _one_by_one(messages: Iterable[tuple[int, bytes] | MessageBatch]) -> Iterator[tuple[Lsn, bytes]]:
    for message in messages:
        for lsn, data in message if isinstance(message, MessageBatch) else [message]:
            yield lsn_of(lsn), data


def _before(events: Iterable[Event], end: Lsn) -> Iterator[Event]:
    """Leave out the transactions that committed at or after a position."""
    for event in events:
        if isinstance(event, Transaction) and event.commit_lsn >= end:
            event.close()
        else:
            yield event
