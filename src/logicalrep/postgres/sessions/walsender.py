"""A replication connection: START_REPLICATION, the server's messages, and the feedback that it waits for.

psycopg has no replication API, but libpq's functions for COPY suffice. The generated codec reads and writes the
envelopes except XLogData's: each message has one, so its header is cut off here, at the generated layout's width.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn, Self

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import ConnectError, ConnectionSettings, error_of, is_ending, settings_of
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import publications_there
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.postgres.silence import Backend, SilentServerError, execute_command, wait_readable
from logicalrep.postgres.slots.positions import check_not_passed, check_within_wal
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep.postgres.slots.usage import retry_until_free
from logicalrep.postgres.timelines import WalPosition
from logicalrep.transactions.frames import HEADER_SIZE, LARGE_BATCH, X_LOG_DATA, last_lsn, messages_of
from logicalrep_protocol import walsender
from logicalrep_runtime.scalars import UNIX_EPOCH, Lsn, TimestampTz, lsn_of

_PAUSE = 0.002
"""The gap between two messages that ends a batch, in seconds."""
_LONGEST = 0.1
"""The longest wait for further messages of a batch, in seconds."""

_CHECK_AGAIN = 1.0
"""The seconds between two looks whether the server is stopping, and without a look at messages before the first."""
_CHECK_LATER = 10.0
"""The same after a server has refused the session that would show it."""
_LONGEST_END = 1.0
"""The longest wait until the server has read the last report, in seconds."""


@dataclass(frozen=True, slots=True)
class Received:
    """One batch from the server; without messages and keepalive if nothing came in time."""

    envelopes: list[bytes]
    """The output plugin's messages in order, each in its envelope."""
    keepalive: Lsn | None = None
    """The server's position from a keepalive that followed these messages; None without one."""
    asks: bool = False
    """Whether the keepalive asks for a status update at once."""
    size: int = field(default=0, compare=False)
    """The bytes of these messages and their envelopes."""

    @property
    def messages(self) -> list[tuple[int, bytes]]:
        """The messages, each with its envelope's position."""
        return messages_of(self.envelopes)

    @property
    def last(self) -> Lsn:
        """The last position that the server reported; 0/0 if nothing came."""
        return max(lsn_of(last_lsn(self.envelopes)), self.keepalive or lsn_of(0))


def receive_messages(connection: Connection, timeout: float, most: int, earliest: float = 0.0) -> Received:
    """Return the next messages of a connection that replicates, as `Walsender.receive` does, and answer nothing.

    Once there are some, further ones are waited for until `earliest`, a time of `time.monotonic`.
    """
    envelopes: list[bytes] = []
    size, deadline = 0, 0.0
    end: Lsn | None = None
    pgconn = connection.pgconn
    with publications_there(connection):
        while len(envelopes) < most and size < LARGE_BATCH:
            length, data = pgconn.get_copy_data(1)
            if length >= HEADER_SIZE and data[0] == X_LOG_DATA:
                envelopes.append(bytes(data))
                size += length
                end = None
            elif length > 0:
                keepalive = walsender.parse(bytes(data))
                assert isinstance(keepalive, walsender.PrimaryKeepaliveMessage)
                end = keepalive.end_lsn
                if keepalive.reply_requested or not envelopes or time.monotonic() >= earliest:
                    return Received(envelopes, end, keepalive.reply_requested, size)
            elif length == 0:
                pause = timeout
                if envelopes:
                    now = time.monotonic()
                    deadline = deadline or max(now + _LONGEST, earliest)
                    pause = min(max(_PAUSE, earliest - now), deadline - now)
                if pause < 0 or not wait_readable(connection, pause):
                    break
                pgconn.consume_input()
            else:
                _raise_the_end(connection)
    return Received(envelopes, end, size=size)


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
        silence: float | None = None,
        left: Backend | None = None,
        gathering: float = 0.0,
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
            silence: the longest time without a word of the server, in seconds; after half of it the server is asked
                for one. None for that of the settings.
            left: the server's process of an earlier session of this reader, which has been closed on this side. It is
                ended, as it would keep the slot: a server that does not notice the end may keep it for ever.
            gathering: the least time from messages to those of the next result of `receive`, in seconds, unless they
                are many: each result may have a cost of its own for the reader.

        Raises:
            LostPositionError: the slot is past `position` (the server would silently start later), or the server's WAL
                does not contain `reached`.
            SlotError: the slot does not exist, is lost, or is in use.
            SilentServerError: the server has stopped answering.
        """
        self.silence = settings.patience if silence is None else silence
        self._gathering = gathering
        # The seconds for which nothing came while it was waited for, and whether the server was asked meanwhile.
        self._silent, self.has_asked = 0.0, False
        self.heard_for = 0.0
        """The seconds from the start until the last word of the server."""
        self._began = self._read_at = self._checked_at = time.monotonic()
        self._messages_at = -math.inf
        self._sentinel: Connection | None = None
        self.slot: Slot
        """The slot as it was before the session started."""
        self.started_at: Lsn
        """The slot's position when the session started: every later commit is sent."""
        self.received = Lsn(0)
        """The last position that the server reported."""
        self._flushed = Lsn(0)
        self._connection = settings.connect(replication=True)
        self.backend = self._connection.backend
        """The server's process of the session; None if the server does not tell it."""
        try:
            command = _start_replication(slot, position or Lsn(0), options).as_bytes(self._connection)
            # The query uses this connection: another one may reach another server.
            self.slot = query_slot(self._connection, slot)
            self._status_interval = min(status_interval, _patience_of_server(self._connection) / 3)
            self._next_status = time.monotonic() + self._status_interval
            if reached is not None:
                check_within_wal(settings, self.slot, reached)
            with settings.connect() as observer:
                if self._connection.info.parameter_status("server_encoding") == "SQL_ASCII":
                    # Such a server converts nothing: it would end the session, again and again, at a byte that is not
                    # UTF-8, whosever it is.
                    self._connection.execute("SET client_encoding = SQL_ASCII")
                if left is not None:
                    left.end(observer)
                retry_until_free(lambda: self._start(command), observer, slot, patience=patience)
                confirmed = query_slot(observer, slot).confirmed.lsn
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
        """End the session; the server keeps the last acknowledged position, unless it is busy or away for long."""
        # The connection may be broken, or the server may have ended the replication.
        with suppress(psycopg.Error):
            self._end_replication()
        self._connection.close()
        self._close_sentinel()

    def _end_replication(self) -> None:
        """Say that nothing follows, and receive until the server has left the slot: then it has read every report.

        A socket that is closed with unread data in it is reset, and the server loses what it has not read of it.
        """
        pgconn = self._connection.pgconn
        pgconn.put_copy_end()
        deadline = time.monotonic() + _LONGEST_END
        has_ended = False
        while (remaining := deadline - time.monotonic()) > 0:
            if not has_ended:
                length, _ = pgconn.get_copy_data(1)
                if length > 0:
                    continue
                has_ended = length < 0
            # The server leaves the slot after its last message, and then says that the command has ended.
            if has_ended and not pgconn.is_busy():
                return
            pgconn.flush()
            if wait_readable(self._connection, remaining):
                pgconn.consume_input()

    def _close_sentinel(self) -> None:
        if self._sentinel is not None:
            self._sentinel.close()
        self._sentinel = None

    def receive(self, timeout: float, most: int = 10_000) -> Received:
        """Return the next messages: those that follow each other closely, up to `most` of them and up to a keepalive.

        The result is empty if none comes within `timeout` seconds. Keepalives are answered, and due reports are sent.

        Raises:
            psycopg.OperationalError: the connection broke, or the server is stopping.
            SilentServerError: the server was silent for too long.
            PublicationError: a publication is missing.
            DecodeError: the bytes are no message.
        """
        self._close_sentinel()
        self._report_if_due()
        began = time.monotonic()
        received = receive_messages(self._connection, timeout, most, self._messages_at + self._gathering)
        self._read_at = time.monotonic()
        if received.size:
            self._messages_at = self._read_at
        self.received = max(self.received, received.last)
        if received.asks:
            self.report()
            self._let_go_if_ending()
        if received.size or received.keepalive is not None:
            self._silent, self.has_asked = 0.0, False
            self.heard_for = self._read_at - self._began
        else:
            # Only waiting counts: a process that was stopped for a while, or had no time to read, has not waited.
            self._count_silence(min(self._read_at - began, timeout))
        return received

    def _count_silence(self, seconds: float) -> None:
        self._silent += seconds
        if self._silent >= self.silence:
            raise SilentServerError(f"the server has been silent for {self._silent:.0f} s, also when it was asked")
        if self._silent >= self.silence / 2 and not self.has_asked:
            self.has_asked = True
            self.report(asks=True)

    def _let_go_if_ending(self) -> None:
        """Raise OperationalError if the server is stopping: it waits until all is acknowledged, or the session ends.

        It asks for updates then, which it does otherwise only if it has not heard of this side for long.
        """
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_AGAIN:
            self._checked_at = now
            if is_ending(self._connection):
                raise psycopg.OperationalError("the server is stopping")

    def acknowledge(self, lsn: Lsn) -> None:
        """Acknowledge every commit before an LSN; the report is sent at once."""
        if lsn > self._flushed:
            self._flushed = lsn
            self.report()

    def report_in_time(self) -> None:
        """Send a status update if one is due; call it while no messages are received, or the server disconnects.

        Raises OperationalError if the server is stopping, which would wait for messages to be received.
        """
        self._report_if_due()
        now = time.monotonic()
        if self._sentinel is None and min(now - self._read_at, now - self._checked_at) >= _CHECK_AGAIN:
            # A stopping server ends ordinary sessions at once, which shows although nothing is received here.
            self._checked_at = now
            try:
                self._sentinel = settings_of(self._connection).connect(is_second=True)
            except (ConnectError, SilentServerError):
                if is_ending(self._connection):
                    raise
                # The server may have no room for it for long.
                self._checked_at = time.monotonic() + _CHECK_LATER
        if self._sentinel is not None and wait_readable(self._sentinel, 0):
            # Raises an error at the session's end.
            self._sentinel.pgconn.consume_input()

    def _report_if_due(self) -> None:
        if time.monotonic() >= self._next_status:
            self.report()

    def report(self, *, asks: bool = False) -> None:
        """Send a status update; with `asks` the server answers at once."""
        update = walsender.StandbyStatusUpdate(
            written_lsn=max(self.received, self._flushed),
            flushed_lsn=self._flushed,
            applied_lsn=self._flushed,
            send_timestamp=TimestampTz(time.time_ns() // 1000 - UNIX_EPOCH),
            reply_requested=asks,
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
        result = execute_command(self._connection, command)
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise error_of(result)


def _patience_of_server(connection: Connection) -> float:
    """Return the server's wal_sender_timeout in seconds."""
    milliseconds: int = query_scalar(
        connection, "SELECT setting::int FROM pg_settings WHERE name = 'wal_sender_timeout'"
    )
    return milliseconds / 1000 or math.inf


def _start_replication(slot: str, position: Lsn, options: PluginOptions) -> sql.Composed:
    settings = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in options.items().items()
    ]
    return sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
        sql.Identifier(slot), sql.SQL(str(position)), sql.SQL(", ").join(settings)
    )
