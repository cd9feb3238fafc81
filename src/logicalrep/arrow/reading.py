"""A session's messages, or a part of a slot, to record batches in the requested columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from logicalrep.arrow.batching import Batching
from logicalrep.arrow.committing import Committing, row_maker
from logicalrep.arrow.message_batch import MessageBatch, message_batches_of
from logicalrep.arrow.positioned_rows import RowMaker, in_parts
from logicalrep.arrow.row_form import RowForm, feed_form
from logicalrep.arrow.transaction_index import UnsupportedError
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn

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

    While the server sends transactions whole, the function reads messages as they arrive. From the first streamed or
    prepared transaction on, and in a session that is not in UTF-8, it assembles transactions first. It omits a
    transaction that is open at the end of the messages.

    Args:
        messages: the session's messages from its start, each with its LSN, or message batches.
        decoder: a new decoder of the session's version and facts.
        form: the wanted rows and columns; by default the change feed.
        start: leave out transactions that committed before this LSN; by default none.
        end: leave out transactions that committed at or after this LSN; by default none. A non-transactional message
            counts at the start of its record, but carries only the record's end: a message that ends at or before
            `start` is left out; for `end` the server decides.
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
    chunks = _chunks(message_batches_of(messages), form, is_capture=is_capture)
    if decoder.encoding != "utf-8":
        yield from assembled(chunks.rest(), decoder, form, row_maker(Decoder(1), form, start, end), start)
        return
    maker = row_maker(decoder, form, start, end)
    for chunk in chunks:
        try:
            yield from (rows.batch for rows in in_parts(maker.rows(chunk), form.rows_per_record_batch))
        except UnsupportedError as error:
            chunks.put_back(chunk[error.index :])
            break
    yield from assembled(chunks.rest(), decoder, form, maker, start)


def _chunks(batches: Iterator[MessageBatch], form: RowForm, *, is_capture: bool) -> Batching:
    if is_capture:
        return Batching(batches, _RECORD_BATCHES_OF_A_CAPTURE * form.rows_per_record_batch, form.memory_limit)
    return Batching(batches, form.rows_per_record_batch, None)


def assembled(
    batches: Iterator[MessageBatch], decoder: Decoder, form: RowForm, maker: RowMaker, start: Lsn | None
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of the rest of a session; the maker has read its beginning."""
    after = None if start is None else ResumeToken(delivered=start, acknowledged=start)
    with Assembler(after=after, memory_limit=form.memory_limit) as assembler:
        committing = Committing(form, assembler, maker)
        intake = committing.intake
        intake.connect(decoder)
        intake.describe(maker.relations)
        for batch in batches:
            for event in intake.take_batch(batch):
                if isinstance(event, Decision):
                    if event.error is not None:
                        raise event.error
                else:
                    yield from committing.committed(event).batches
