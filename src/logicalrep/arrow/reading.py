"""A session's messages, or a part of a slot, to record batches in the columns asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Any, cast

import pyarrow as pa

from logicalrep.arrow.batch_intake import BatchIntake, WholeTransactions
from logicalrep.arrow.batching import Batching
from logicalrep.arrow.builders import builder_for, columnar, of_whole, reads_in_columns
from logicalrep.arrow.feed.rows import batches, parts
from logicalrep.arrow.message_batch import MessageBatch, message_batches_of
from logicalrep.arrow.row_form import RowForm, feed_form
from logicalrep.arrow.transaction_index import UnsupportedError
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import events as assembled_events
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Event, Transaction
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn, lsn_of

# A capture is available at once, so more of it is read per call. A slot's first rows must not wait for more.
_RECORD_BATCHES_OF_A_CAPTURE = 3


def committed_batches(
    messages: Iterable[tuple[int, bytes] | MessageBatch],
    decoder: Decoder,
    form: RowForm | None = None,
    *,
    start: Lsn | None = None,
    end: Lsn | None = None,
    is_capture: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield record batches of committed changes from the messages of a session.

    Messages are read in columns while transactions are sent whole. From the first streamed or prepared one on, all are
    assembled, and some are read row by row. A transaction that has not ended with the messages is left out.

    Args:
        messages: the session's messages from its start, each with its LSN, or message batches.
        decoder: a new decoder of the session's version and facts.
        form: the wanted rows and columns; by default the change feed.
        start: leave out transactions that committed before this LSN; by default none.
        end: leave out transactions that committed at or after this LSN; by default none. A non-transactional message
            counts at the start of its record, but tells only the record's end: a message that ends at or before `start`
            is left out; for `end` the server decides.
        is_capture: whether all messages are available at once, so that more of them may be read together.

    Raises:
        DecodeError: bytes are not a message.
        TransactionError: messages are not in a valid order.

    Example:
        >>> with Capture.open("orders.jsonl.gz") as capture:
        ...     for batch in committed_batches(capture.batches(), capture.session.decoder()):
        ...         print(batch.num_rows)
    """
    form = form or feed_form()
    message_batches = message_batches_of(messages)
    if reads_in_columns(form, decoder.encoding):
        yield from in_columns(message_batches, decoder, form, start, end, is_capture=is_capture)
    else:
        yield from row_by_row(chain.from_iterable(message_batches), decoder, form, start, end)


def row_by_row(
    messages: Iterable[tuple[int, bytes]],
    decoder: Decoder,
    form: RowForm,
    start: Lsn | None,
    end: Lsn | None,
) -> Iterator[Any]:
    after = None if start is None else ResumeToken(delivered=start, acknowledged=start)
    with Assembler(after=after, memory_limit=form.memory_limit) as assembler:
        with_lsns = ((lsn_of(lsn), data) for lsn, data in messages)
        events: Iterable[Event] = assembled_events(with_lsns, decoder, assembler)
        if end is not None:
            events = before(events, end)
        yield from batches(events, builder_for(form, decoder.encoding), rows=form.rows_per_record_batch)


def in_columns(
    message_batches: Iterator[MessageBatch],
    decoder: Decoder,
    form: RowForm,
    start: Lsn | None,
    end: Lsn | None,
    *,
    is_capture: bool = True,
) -> Iterator[Any]:
    """Yield record batches like `committed_batches`, in columns."""
    feed = columnar(decoder, form, start, end)
    rows = form.rows_per_record_batch
    if is_capture:
        chunks = Batching(message_batches, _RECORD_BATCHES_OF_A_CAPTURE * rows, form.memory_limit)
    else:
        chunks = Batching(message_batches, rows, None)
    for chunk in chunks:
        try:
            yield from parts(feed.batches(chunk), rows)
        except UnsupportedError as error:
            chunks.put_back(chunk[error.index :])
            break
    rest = chunks.rest()
    first = next(rest, None)
    if first is None:
        return
    if start is None and end is None:
        yield from assembled(chain(feed.preamble(), (first,), rest), decoder, form)
    else:
        messages = chain(feed.preamble(), first, chain.from_iterable(rest))
        yield from row_by_row(messages, decoder, form, start, end)


def assembled(messages: Iterable[tuple[int, bytes] | MessageBatch], decoder: Decoder, form: RowForm) -> Iterator[Any]:
    """Yield all record batches like `committed_batches`, in columns where a transaction is large enough."""
    builder, feed = builder_for(form), columnar(Decoder(1), form, None, None)
    with Assembler(memory_limit=form.memory_limit) as assembler:
        intake = BatchIntake(assembler, form.memory_limit)
        intake.connect(decoder)
        found = chain.from_iterable(intake.take_batch(batch) for batch in message_batches_of(messages))
        for are_whole, group in groupby(found, lambda item: isinstance(item, WholeTransactions)):
            if are_whole:
                for transactions in cast(Iterator[WholeTransactions], group):
                    yield from of_whole(transactions, feed, form.rows_per_record_batch)
            else:
                yield from batches(cast(Iterator[Event], group), builder, rows=form.rows_per_record_batch)


def before(events: Iterable[Event], end: Lsn) -> Iterator[Event]:
    """Leave out the transactions that committed at or after a position."""
    for event in events:
        if isinstance(event, Transaction) and event.commit_lsn >= end:
            event.close()
        else:
            yield event
