"""A slot's messages through SQL, several times faster than a walsender sends them, and without moving the slot.

pg_logical_slot_peek_binary_changes starts at the slot's confirmed_flush_lsn and gives whole transactions in the order
of their commits. The server puts all of it together (on disk, if it is much) before it sends the first row.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from itertools import chain, islice
from struct import Struct
from typing import TYPE_CHECKING

import psycopg
from psycopg import pq, sql

from logicalrep import Lsn
from logicalrep.scalars import lsn_of
from logicalrep_pipeline.frames import LARGE_BLOCK
from logicalrep_pipeline.plugin_options import PluginOptions
from logicalrep_pipeline.slots import Connection, when_free

if TYPE_CHECKING:
    from logicalrep_pipeline.blocks import Block

# A row of COPY in binary format: the number of fields, then the length of each and its bytes: an LSN, and a message.
_ROW = Struct(">hiQi")
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"
# A block has so many rows at most, as a record batch of Spark, so that most need not be put together again; its bytes
# are looked at after each step of so many.
_ROWS, _STEP = 10_000, 16


def peek(
    connection: Connection,
    slot: str,
    options: PluginOptions,
    *,
    upto_lsn: Lsn | None = None,
    upto_messages: int | None = None,
    patience: float = 30,
) -> Iterator[tuple[Lsn, bytes]]:
    """The messages from the slot's position on, each with its LSN, without moving the slot.

    Args:
        connection: one in autocommit that does nothing else meanwhile.
        slot: the slot's name.
        options: pgoutput's options; streaming must be off.
        upto_lsn: every transaction whose commit record starts before this, and perhaps one more.
        upto_messages: stop at the end of the transaction that reaches this number of messages.
        patience: how long to wait for another process to let go of the slot, in seconds.
    """
    blocks = _copy(connection, slot, options, upto_lsn, upto_messages, patience)
    unpack, row_size = _ROW.unpack_from, _ROW.size
    offset = _HEADER
    for block in blocks:
        size = len(block)
        while offset < size and block[offset : offset + 2] != _TRAILER:
            _, _, lsn, length = unpack(block, offset)
            start = offset + row_size
            offset = start + length
            yield lsn_of(lsn), bytes(block[start:offset])
        offset = 0


def peek_blocks(
    connection: Connection, slot: str, options: PluginOptions, upto_lsn: Lsn | None = None, patience: float = 30
) -> Iterator[Block]:
    """As `peek`, as arrays without a Python object for each message; needs `logicalrep[arrow]`."""
    from logicalrep_pipeline.blocks import split

    copied = _copy(connection, slot, options, upto_lsn, None, patience)
    data, left = bytearray(next(copied)[_HEADER:]), bytearray()
    while not left:
        # One by one into one buffer: to keep them for a join takes twice as long, as each keeps memory of its own.
        for _ in range(0, _ROWS, _STEP):
            for row in islice(copied, _STEP):
                data += row
            if len(data) >= LARGE_BLOCK:
                break
        if not data:
            break
        size, block = split(data, _ROW.size)
        yield block
        data, left = bytearray(), data[size:]
    if left != _TRAILER:
        raise psycopg.DataError("the server did not send rows of an LSN and a message each")


def peek_call(slot: str, options: PluginOptions, upto_lsn: Lsn | None, upto_messages: int | None) -> sql.Composed:
    """The call of the server's function, to stand after FROM."""
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
    patience: float,
) -> Iterator[memoryview | bytes]:
    assert options.streaming == "off"
    statement = sql.SQL("COPY (SELECT lsn, data FROM {}) TO STDOUT (FORMAT binary)").format(
        peek_call(slot, options, upto_lsn, upto_messages)
    )
    text = statement.as_bytes(connection)
    return when_free(lambda: _started(connection, text), connection, slot, patience=patience)


def _started(connection: Connection, statement: bytes) -> Iterator[memoryview | bytes]:
    """The blocks of a COPY of which the first has arrived, so that the server has begun to answer without an error."""
    blocks = _blocks(connection, statement)
    first = next(blocks, b"")
    return chain((first,), blocks)


def _blocks(connection: Connection, statement: bytes) -> Iterator[memoryview | bytes]:
    pgconn = connection.pgconn
    result = pgconn.exec_(statement)
    if result.status != pq.ExecStatus.COPY_OUT:
        raise _error(connection, result)
    finished = False
    try:
        while True:
            size, data = pgconn.get_copy_data(1)
            if size > 0:
                yield data
            elif size == 0:
                wait_readable(connection, None)
                pgconn.consume_input()
            else:
                break
        finished = True
        result = pgconn.get_result()  # type: ignore[assignment]
        if result is not None and result.status != pq.ExecStatus.COMMAND_OK:
            raise _error(connection, result)
    finally:
        if not finished:
            _abandon(connection)
        while pgconn.status == pq.ConnStatus.OK and pgconn.get_result() is not None:
            pass


def _abandon(connection: Connection) -> None:
    """Leave a COPY half read: ask the server to stop, and take what is still on its way."""
    pgconn = connection.pgconn
    try:
        connection.cancel()
        deadline = time.monotonic() + 10
        while pgconn.get_copy_data(0)[0] > 0 and time.monotonic() < deadline:
            pass
    except psycopg.Error:
        connection.close()


def wait_readable(connection: Connection, timeout: float | None) -> bool:
    """Wait until the server has sent something; whether it has."""
    readable, _, _ = select.select([connection.pgconn.socket], [], [], timeout)
    return bool(readable)


def _error(connection: Connection, result: pq.abc.PGresult) -> psycopg.Error:
    return psycopg.errors.error_from_result(result, encoding="utf-8")
