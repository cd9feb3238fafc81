"""A replication connection: START_REPLICATION, the server's messages, and the feedback that it waits for.

psycopg has no replication API, but libpq's functions for COPY suffice. The generated codec reads and writes the
envelopes except XLogData's: each message has one, so its header is cut off here, at the generated layout's width.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from struct import Struct
from typing import NoReturn, Self

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import ConnectionSettings, error_of
from logicalrep.postgres.copy_stream import wait_readable
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import publications_there
from logicalrep.postgres.slots import Connection, Slot, check_not_passed, check_within_wal, scalar, the_slot, when_free
from logicalrep.postgres.timelines import WalPosition
from logicalrep.transactions.frames import LARGE_BATCH
from logicalrep_protocol import walsender
from logicalrep_protocol.layouts import WALSENDER
from logicalrep_runtime.scalars import UNIX_EPOCH, Lsn, TimestampTz, lsn_of

_X_LOG_DATA = ord(walsender.XLogData.tag)
_FIELDS = next(layout.fields for layout in WALSENDER.messages if layout.name == "XLogData")[:-1]
_HEADER = Struct(">" + "".join({1: "B", 8: "Q"}[field.width] for field in _FIELDS))
"""The fields of XLogData before its payload."""
_START_LSN = [field.name for field in _FIELDS].index("start_lsn")

_PAUSE = 0.002
"""The gap between two messages that ends a batch, in seconds."""
_LONGEST = 0.1
"""The longest wait for further messages of a batch, in seconds."""


@dataclass(frozen=True, slots=True)
class Received:
    """One batch from the server; without messages and keepalive if nothing came in time."""

    messages: list[tuple[int, bytes]]
    """The output plugin's messages in order, each with its envelope's position."""
    keepalive: Lsn | None = None
    """The server's position from a keepalive that followed these messages; None without one."""
    asks: bool = False
    """Whether the keepalive asks for a status update at once."""
    size: int = field(default=0, compare=False)
    """The bytes of these messages and their envelopes."""

    @property
    def last(self) -> Lsn:
        """The last position that the server reported; 0/0 if nothing came."""
        # In logical replication a message's start_lsn and end_lsn are the same.
        return max(lsn_of(max((lsn for lsn, _ in self.messages), default=0)), self.keepalive or lsn_of(0))


def receive_messages(connection: Connection, timeout: float, most: int) -> Received:
    """Return the next messages of a connection that replicates, as `Walsender.receive` does, and answer nothing."""
    messages: list[tuple[int, bytes]] = []
    size, deadline = 0, 0.0
    pgconn, read_header = connection.pgconn, _HEADER.unpack_from
    with publications_there(connection):
        while len(messages) < most and size < LARGE_BATCH:
            length, data = pgconn.get_copy_data(1)
            if length >= _HEADER.size and data[0] == _X_LOG_DATA:
                envelope = bytes(data)
                messages.append((read_header(envelope)[_START_LSN], envelope[_HEADER.size :]))
                size += length
            elif length > 0:
                keepalive = walsender.parse(bytes(data))
                assert isinstance(keepalive, walsender.PrimaryKeepaliveMessage)
                return Received(messages, keepalive.end_lsn, keepalive.reply_requested, size)
            elif length == 0:
                pause = timeout
                if messages:
                    now = time.monotonic()
                    deadline = deadline or now + _LONGEST
                    pause = min(_PAUSE, deadline - now)
                if pause < 0 or not wait_readable(connection, pause):
                    break
                pgconn.consume_input()
            else:
                _raise_the_end(connection)
    return Received(messages, size=size)


def _raise_the_end(connection: Connection) -> NoReturn:
    result = connection.pgconn.get_result()
    if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
        raise error_of(result)
    raise psycopg.OperationalError("the server ended the replication")


class Walsender:
    """One session of START_REPLICATION on a logical slot.

    Example:
        >>> with Walsender(settings, "slot", options) as session:
        ...     for position, data in session.receive(timeout=1).messages:
        ...         ...
        ...     session.acknowledge(Lsn("16/B374D848"))
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        slot: str,
        options: PluginOptions,
        *,
        position: Lsn | None = None,
        reached: WalPosition | None = None,
        status_interval: float = 10,
        patience: float = 30,
    ) -> None:
        """Connect and start from the slot's position.

        Args:
            settings: where to connect.
            slot: the slot's name.
            options: pgoutput's options.
            position: the LSN up to which the reader has everything; None to start at the slot's position.
            reached: the position that the reader had reached before, which may be later than `position`.
            status_interval: the longest time between two reports to the server, in seconds; it is shorter if the
                server waits for less than three times as long.
            patience: the longest wait for another process to release the slot, in seconds.

        Raises:
            LostPositionError: the slot is past `position` (the server would silently start later), or the server's WAL
                does not contain `reached`.
            SlotError: the slot does not exist, is lost, or is in use.
        """
        self.slot: Slot
        """The slot as it was before the session started."""
        self.started_at: Lsn
        """The slot's position when the session started: every later commit is sent."""
        self.received = Lsn(0)
        """The last position that the server reported."""
        self._flushed = Lsn(0)
        self._connection = settings.connect(replication=True)
        try:
            command = _start_replication(slot, position or Lsn(0), options).as_bytes(self._connection)
            # The query uses this connection: another one may reach another server.
            self.slot = the_slot(self._connection, slot)
            self._status_interval = min(status_interval, _patience_of_server(self._connection) / 3)
            self._next_status = time.monotonic() + self._status_interval
            if reached is not None:
                check_within_wal(settings, self.slot, reached)
            with settings.connect() as observer:
                if self._connection.info.parameter_status("server_encoding") == "SQL_ASCII":
                    # Such a server converts nothing: it would end the session, again and again, at a byte that is not
                    # UTF-8, whosever it is.
                    self._connection.execute("SET client_encoding = SQL_ASCII")
                when_free(lambda: self._start(command), observer, slot, patience=patience)
                confirmed = the_slot(observer, slot).confirmed.lsn
            if position is not None:
                check_not_passed(slot, confirmed, position)
            self.started_at = confirmed
            self._flushed = confirmed
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the server keeps the last acknowledged position."""
        self._connection.close()

    def receive(self, timeout: float, most: int = 10_000) -> Received:
        """Return the next messages: those that follow each other closely, up to `most` of them and up to a keepalive.

        The result is empty if none comes within `timeout` seconds. Keepalives are answered, and due reports are sent.

        Raises:
            psycopg.OperationalError: the connection broke.
            PublicationError: a publication is missing.
            DecodeError: the bytes are no message.
        """
        self.report_in_time()
        received = receive_messages(self._connection, timeout, most)
        self.received = max(self.received, received.last)
        if received.asks:
            self.report()
        return received

    def acknowledge(self, lsn: Lsn) -> None:
        """Acknowledge every commit before an LSN; the report is sent at once."""
        if lsn > self._flushed:
            self._flushed = lsn
            self.report()

    def report_in_time(self) -> None:
        """Send a status update if one is due; call it while no messages are received, or the server disconnects."""
        if time.monotonic() >= self._next_status:
            self.report()

    def report(self) -> None:
        """Send a status update."""
        update = walsender.StandbyStatusUpdate(
            written_lsn=max(self.received, self._flushed),
            flushed_lsn=self._flushed,
            applied_lsn=self._flushed,
            send_timestamp=TimestampTz(time.time_ns() // 1000 - UNIX_EPOCH),
            reply_requested=False,
        )
        pgconn = self._connection.pgconn
        # libpq takes the server's warnings in here too.
        with publications_there(self._connection):
            while pgconn.put_copy_data(update.build()) == 0:
                pgconn.flush()
            while pgconn.flush():
                time.sleep(0.001)
        self._next_status = time.monotonic() + self._status_interval

    def _start(self, command: bytes) -> None:
        result = self._connection.pgconn.exec_(command)
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise error_of(result)


def _patience_of_server(connection: Connection) -> float:
    """Return the server's wal_sender_timeout in seconds."""
    milliseconds: int = scalar(connection, "SELECT setting::int FROM pg_settings WHERE name = 'wal_sender_timeout'")
    return milliseconds / 1000 or math.inf


def _start_replication(slot: str, position: Lsn, options: PluginOptions) -> sql.Composed:
    settings = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in options.items().items()
    ]
    return sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
        sql.Identifier(slot), sql.SQL(str(position)), sql.SQL(", ").join(settings)
    )
