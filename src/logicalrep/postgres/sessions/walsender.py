"""A replication connection: START_REPLICATION, the server's messages, and status updates.

psycopg has no replication API, but libpq's functions for COPY suffice. The generated codec reads and writes all
envelopes except XLogData, the envelope of every message: this module cuts its header off at the generated layout's
width.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NoReturn, Self

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import ConnectError, ConnectionSettings, error_of, is_ending, settings_of
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import publication_errors
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.postgres.sessions.readable_names import ReadableNames
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
_GATHERING_STEP = 0.02
"""The seconds after which a batch that is gathered looks again until when."""

_CHECK_INTERVAL = 1.0
"""The seconds between checks whether the server is stopping, and without receiving messages before the first check."""
_CHECK_INTERVAL_AFTER_REFUSAL = 10.0
"""The same after the server has refused the session for these checks."""
_LONGEST_END = 1.0
"""The longest wait until the server has read the last status update, in seconds."""


@dataclass(frozen=True, slots=True)
class Received:
    """A batch of messages; without messages and keepalive if nothing arrived in time."""

    envelopes: list[bytes]
    keepalive: Lsn | None = None
    """The server's position from a keepalive after these messages; None without a keepalive."""
    asks: bool = False
    """Whether the keepalive requests an immediate status update."""
    size: int = field(default=0, compare=False)
    gathering: float = field(default=0.0, compare=False)
    """The seconds that these messages waited for further messages, as the reader requested."""

    @property
    def messages(self) -> list[tuple[int, bytes]]:
        return messages_of(self.envelopes)

    @property
    def last(self) -> Lsn:
        """The last position that the server reported; 0/0 without any."""
        return max(lsn_of(last_lsn(self.envelopes)), self.keepalive or lsn_of(0))


Gathering = Callable[[int, float], float]
"""For the bytes of received messages and the time of their first message: the time until which they wait for further
messages. All times are of `time.monotonic`."""


def without_gathering(size: int, began: float) -> float:
    """Return that messages wait only for a short gap."""
    return 0.0


def receive_messages(
    connection: Connection, timeout: float, most: int, gathers_until: Gathering = without_gathering
) -> Received:
    """Like `Walsender.receive`, without answering."""
    envelopes: list[bytes] = []
    size, began, gathering = 0, 0.0, 0.0
    end: Lsn | None = None
    pgconn = connection.pgconn
    with publication_errors(connection):
        while len(envelopes) < most and size < LARGE_BATCH:
            length, data = pgconn.get_copy_data(1)
            if length >= HEADER_SIZE and data[0] == X_LOG_DATA:
                if not envelopes:
                    began = time.monotonic()
                envelopes.append(bytes(data))
                size += length
                end = None
            elif length > 0:
                keepalive = walsender.parse(bytes(data))
                assert isinstance(keepalive, walsender.PrimaryKeepaliveMessage)
                end = keepalive.end_lsn
                if keepalive.reply_requested or not envelopes or time.monotonic() >= gathers_until(size, began):
                    return Received(envelopes, end, keepalive.reply_requested, size, gathering)
            elif length == 0:
                time_now = time.monotonic()
                seconds = gathers_until(size, began) - time_now if envelopes else 0.0
                if seconds > 0:
                    is_readable = wait_readable(connection, min(seconds, _GATHERING_STEP))
                    gathering += time.monotonic() - time_now
                else:
                    pause = min(_PAUSE, began + _LONGEST - time_now) if envelopes else timeout
                    is_readable = pause >= 0 and wait_readable(connection, pause)
                    if not is_readable:
                        break
                if is_readable:
                    pgconn.consume_input()
            else:
                _raise_stream_end(connection)
    return Received(envelopes, end, size=size, gathering=gathering)


def _raise_stream_end(connection: Connection) -> NoReturn:
    result = connection.pgconn.get_result()
    if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
        raise error_of(result)
    raise psycopg.OperationalError("the server ended the replication")


class Walsender:
    """A session of START_REPLICATION on a logical slot.

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
        previous_backend: Backend | None = None,
        gathers_until: Gathering = without_gathering,
    ) -> None:
        """Connect and start from the slot's position.

        Args:
            position: the reader has every commit before this LSN; None to start at the slot's position.
            reached: the position that the reader has reached earlier; it may be after `position`.
            status_interval: the most seconds between status updates; at most a third of wal_sender_timeout.
            patience: seconds to wait for another process to release the slot.
            silence: the longest silence of the server, in seconds; after half of it, a keepalive is requested. None
                for the patience of the settings.
            previous_backend: the process of this reader's previous session, which is terminated: a server that does not
                notice the close would keep the slot in use.
            gathers_until: until when `receive` waits for further messages.

        Raises:
            LostPositionError: the slot is past `position` (the server would silently start later), or the server's WAL
                does not contain `reached`.
            SlotError: the slot does not exist, is lost, or is in use.
            SilentServerError: the server does not answer.
        """
        self.silence = settings.patience if silence is None else silence
        self._gathers_until = gathers_until
        # The seconds of silence while waiting, and whether a keepalive was requested in this time.
        self._silent, self.has_asked = 0.0, False
        self.heard_for = 0.0
        """The seconds from the start to the server's last message."""
        self._began = self._read_at = self._checked_at = time.monotonic()
        self._sentinel: Connection | None = None
        self.slot: Slot
        """The slot as it was before the session started."""
        self.started_at: Lsn
        """The slot's position when the session started: the server sends every later commit."""
        self.received = Lsn(0)
        self._flushed = Lsn(0)
        self._names: ReadableNames | None = None
        self._connection = settings.connect(replication=True)
        self.backend = self._connection.backend
        """The session's server process; None if the server does not show it."""
        try:
            command = _start_replication(slot, position or Lsn(0), options).as_bytes(self._connection)
            # The query uses this connection, because another connection may reach another server.
            self.slot = query_slot(self._connection, slot)
            self._status_interval = min(status_interval, _patience_of_server(self._connection) / 3)
            self._next_status = time.monotonic() + self._status_interval
            if reached is not None:
                check_within_wal(settings, self.slot, reached)
            with settings.connect() as observer:
                if self._connection.info.parameter_status("server_encoding") == "SQL_ASCII":
                    # Such a server converts nothing: with UTF8 any byte that is not UTF-8 would end every session.
                    self._connection.execute("SET client_encoding = SQL_ASCII")
                    self._names = ReadableNames(options.proto_version)
                if previous_backend is not None:
                    previous_backend.end(observer)
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
        """End the session; the server stores the last acknowledged position unless it does not answer for a second."""
        # The connection may be broken, or the server may have ended the replication.
        with suppress(psycopg.Error):
            self._end_replication()
        self._connection.close()
        self._close_sentinel()

    def _end_replication(self) -> None:
        """Receive until the server has read every status update: a closed socket with unread data would be reset."""
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
            # The server releases the slot after its last message, and then ends the command.
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
        """Return the next messages, up to a gap, a keepalive or `most` messages; send due status updates.

        The result is empty if no message arrives within `timeout` seconds.

        Raises:
            psycopg.OperationalError: the connection broke, or the server is stopping.
            SilentServerError: the server was silent for too long.
            PublicationError: a publication is missing.
            DecodeError: a message is invalid.
        """
        self._close_sentinel()
        self._report_if_due()
        began = time.monotonic()
        received = receive_messages(self._connection, timeout, most, self._gathers_until)
        if self._names is not None:
            received = replace(received, envelopes=self._names.replace_in(received.envelopes))
        self._read_at = time.monotonic()
        self.received = max(self.received, received.last)
        if received.asks:
            self.report()
            self._raise_if_server_stops()
        if received.size or received.keepalive is not None:
            self._silent, self.has_asked = 0.0, False
            self.heard_for = self._read_at - self._began
        else:
            # Only waiting counts, not the time in which this process was stopped or busy.
            self._count_silence(min(self._read_at - began, timeout))
        return received

    def _count_silence(self, seconds: float) -> None:
        self._silent += seconds
        if self._silent >= self.silence:
            raise SilentServerError(
                f"the server has been silent for {self._silent:.0f} s, even after a request for an answer"
            )
        if self._silent >= self.silence / 2 and not self.has_asked:
            self.has_asked = True
            self.report(asks=True)

    def _raise_if_server_stops(self) -> None:
        """A stopping server waits until all is acknowledged, and requests status updates meanwhile."""
        time_now = time.monotonic()
        if time_now - self._checked_at >= _CHECK_INTERVAL:
            self._checked_at = time_now
            if is_ending(self._connection):
                raise psycopg.OperationalError("the server is stopping")

    def acknowledge(self, lsn: Lsn) -> None:
        """Acknowledge every commit before an LSN with an immediate status update."""
        if lsn > self._flushed:
            self._flushed = lsn
            self.report()

    def report_in_time(self) -> None:
        """Send a status update if due; call it while not receiving messages, or the server disconnects.

        Raises OperationalError if the server is stopping, because it waits until its messages are received.
        """
        self._report_if_due()
        time_now = time.monotonic()
        if self._sentinel is None and min(time_now - self._read_at, time_now - self._checked_at) >= _CHECK_INTERVAL:
            # A stopping server ends ordinary sessions at once, such as the sentinel.
            self._checked_at = time_now
            try:
                self._sentinel = settings_of(self._connection).connect(is_observer=True)
            except (ConnectError, SilentServerError):
                if is_ending(self._connection):
                    raise
                # The server may have no free connection for long.
                self._checked_at = time.monotonic() + _CHECK_INTERVAL_AFTER_REFUSAL
        if self._sentinel is not None and wait_readable(self._sentinel, 0):
            # Raises an error if the session has ended.
            self._sentinel.pgconn.consume_input()

    def _report_if_due(self) -> None:
        if time.monotonic() >= self._next_status:
            self.report()

    def report(self, *, asks: bool = False) -> None:
        """Send a status update; with `asks` it requests an immediate answer."""
        update = walsender.StandbyStatusUpdate(
            written_lsn=max(self.received, self._flushed),
            flushed_lsn=self._flushed,
            applied_lsn=self._flushed,
            send_timestamp=TimestampTz(time.time_ns() // 1000 - UNIX_EPOCH),
            reply_requested=asks,
        )
        pgconn = self._connection.pgconn
        # libpq may receive the server's warnings here.
        with publication_errors(self._connection):
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
    # wal_sender_timeout, in seconds.
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
