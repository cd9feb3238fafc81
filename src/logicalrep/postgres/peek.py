"""A slot's messages through SQL: several times faster than a walsender, and the slot does not move.

pg_logical_slot_peek_binary_changes starts at the slot's confirmed_flush_lsn and returns whole transactions in the order
of their commits. The server collects the whole result (a large one on disk) before it sends the first row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from logicalrep.postgres.copy_stream import receive_rows, send, start_copy
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import publication_errors
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.usage import retry_until_free
from logicalrep.transactions.frames import gathered
from logicalrep_runtime.scalars import Lsn, lsn_of

if TYPE_CHECKING:
    from logicalrep.arrow.message_batch import MessageBatch

# A row of COPY in binary format: the number of fields, then the length and bytes of each: an LSN and a message.
_ROW = Struct(">hiQi")
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"


def peek(
    connection: Connection,
    slot: str,
    options: PluginOptions,
    *,
    upto_lsn: Lsn | None = None,
    upto_messages: int | None = None,
    patience: float = 30,
) -> Iterator[tuple[Lsn, bytes]]:
    """Yield the LSNs and messages from the slot's position on; the slot does not move.

    Args:
        connection: not to be used until all messages are read.
        options: streaming must be off.
        upto_lsn: every transaction whose commit record starts before it is read, and possibly one more.
        upto_messages: stop after the transaction that reaches this number of messages.
        patience: seconds to wait for another process to release the slot.
    """
    unpack, row_size = _ROW.unpack_from, _ROW.size
    offset = _HEADER
    with publication_errors(connection):
        for chunk in _copy(connection, slot, options, upto_lsn, upto_messages, patience):
            size = len(chunk)
            while offset < size and chunk[offset : offset + 2] != _TRAILER:
                _, _, lsn, length = unpack(chunk, offset)
                start = offset + row_size
                offset = start + length
                yield lsn_of(lsn), bytes(chunk[start:offset])
            offset = 0


def peek_batches(
    connection: Connection, slot: str, options: PluginOptions, upto_lsn: Lsn | None = None
) -> Iterator[MessageBatch]:
    """Yield the messages of `peek` in arrays, without a Python object for each. Needs `logicalrep[arrow]`."""
    with publication_errors(connection):
        yield from _in_batches(_copy(connection, slot, options, upto_lsn, None))


def peek_batches_from(
    connection: Connection, slot: str, options: PluginOptions, start: Lsn, upto_lsn: Lsn
) -> Iterator[MessageBatch]:
    """Advance the slot to `start`, and return the batches of `peek_batches`. The server starts decoding at once.

    No other process may use the slot, and the connection must not be used until all batches are read. A message
    outside of transactions is read if its record begins at or after `start`; `start` must not be in a page's header.
    """
    advance = sql.SQL("SELECT pg_replication_slot_advance({}, {}::pg_lsn)").format(slot, str(start))
    send(connection, sql.SQL("; ").join((advance, _statement(slot, options, upto_lsn, None))))
    return _receive_sent(connection)


def _receive_sent(connection: Connection) -> Iterator[MessageBatch]:
    with publication_errors(connection):
        yield from _in_batches(receive_rows(connection))


def _in_batches(copied: Iterator[memoryview | bytes]) -> Iterator[MessageBatch]:
    from logicalrep.arrow.message_batch import split

    remainder = bytearray()
    for data in gathered(chain((next(copied)[_HEADER:],), copied)):
        size, batch = split(data, _ROW.size)
        yield batch
        remainder = data[size:]
        if remainder:
            break
    if remainder != _TRAILER:
        raise psycopg.DataError("the server's rows do not consist of an LSN and a message")


def peek_call(slot: str, options: PluginOptions, upto_lsn: Lsn | None, upto_messages: int | None) -> sql.Composed:
    arguments: list[sql.Composable] = [
        sql.Literal(slot),
        sql.Literal(None if upto_lsn is None else str(upto_lsn)),
        sql.Literal(upto_messages),
    ]
    arguments += [sql.Literal(text) for text in chain.from_iterable(options.items().items())]
    return sql.SQL("pg_logical_slot_peek_binary_changes({})").format(sql.SQL(", ").join(arguments))


def _copy(
    connection: Connection,
    slot: str,
    options: PluginOptions,
    upto_lsn: Lsn | None,
    upto_messages: int | None,
    patience: float = 30,
) -> Iterator[memoryview | bytes]:
    statement = _statement(slot, options, upto_lsn, upto_messages)
    return retry_until_free(lambda: start_copy(connection, statement), connection, slot, patience=patience)


def _statement(slot: str, options: PluginOptions, upto_lsn: Lsn | None, upto_messages: int | None) -> sql.Composed:
    assert options.streaming == "off"
    return sql.SQL("COPY (SELECT lsn, data FROM {}) TO STDOUT (FORMAT binary)").format(
        peek_call(slot, options, upto_lsn, upto_messages)
    )
