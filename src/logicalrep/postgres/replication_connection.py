"""A replication connection: START_REPLICATION, what the server sends, and the feedback that it waits for.

psycopg has no replication API, but libpq's functions for COPY are all that it takes. The envelopes are read and written
by the generated codec, but for XLogData's: there is one for each message, so its header is taken off as it comes, by
the generated layout.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from struct import Struct
from types import TracebackType
from typing import NoReturn, Self

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import ConnectionSettings, error_of
from logicalrep.postgres.copy_stream import wait_readable
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import publications_there
from logicalrep.postgres.slots import Connection, Slot, check_not_passed, check_within_wal, the_slot, when_free
from logicalrep.postgres.timelines import WalPosition
from logicalrep.transactions.frames import LARGE_BATCH
from logicalrep_protocol import walsender
from logicalrep_protocol.layouts import WALSENDER
from logicalrep_runtime.scalars import UNIX_EPOCH, Lsn, TimestampTz, lsn_of

_X_LOG_DATA = ord(walsender.XLogData.tag)
_FIELDS = next(layout.fields for layout in WALSENDER.messages if layout.name == "XLogData")[:-1]
_HEADER = Struct(">" + "".join({1: "B", 8: "Q"}[field.width] for field in _FIELDS))
"""XLogData before its payload."""
_START_LSN = [field.name for field in _FIELDS].index("start_lsn")

_PAUSE = 0.002
"""For how long nothing comes where messages do not follow each other closely, in seconds."""
_LONGEST = 0.1
"""How long messages wait for those that follow closely, in seconds."""


@dataclass(frozen=True, slots=True)
class Received:
    """What the server sent; nothing of either kind if nothing came in time."""

    messages: list[tuple[int, bytes]]
    """The output plugin's messages in order, each with the position that came with it."""
    keepalive: Lsn | None = None
    """How far the server is, where it said so after these messages."""


class Walsender:
    """One session of START_REPLICATION on a logical slot.

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
            position: what the reader has. The server starts from the slot's own position if that is later, and does
                not say so; here that is a LostPositionError.
            reached: how far the reader came before, which may be further. Where the server's WAL did not come by there,
                that is a LostPositionError too.
            status_interval: how often to report to the server at least, in seconds; more often where it waits for less
                than three times as long.
            patience: how long to wait for another process to let go of the slot, in seconds.
        """
        self.slot: Slot
        """The slot as it was before the session started."""
        self.started_at: Lsn
        """The slot's position when the session started: all that committed from there on comes."""
        self.received = Lsn(0)
        """The last position that the server was seen to have reached."""
        self._flushed = Lsn(0)
        self._connection = settings.connect(replication=True)
        try:
            command = _start_replication(slot, position or Lsn(0), options).as_bytes(self._connection)
            # Asked over this connection: another one may be to another server.
            self.slot = the_slot(self._connection, slot)
            self._status_interval = min(status_interval, _patience_of_server(self._connection) / 3)
            self._next_status = time.monotonic() + self._status_interval
            if reached is not None:
                check_within_wal(settings, self.slot, reached)
            with settings.connect() as observer:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the server keeps the position that was acknowledged last."""
        self._connection.close()

    def receive(self, timeout: float, most: int = 10_000) -> Received:
        """The next messages: those that follow each other closely, up to so many, and up to a keepalive.

        Nothing if none comes within `timeout` seconds. Answers keepalives, and reports in time.

        Raises psycopg.OperationalError when the connection breaks, PublicationError where a publication is missing,
        and DecodeError for bytes that are no message.
        """
        self.report_in_time()
        messages: list[tuple[int, bytes]] = []
        keepalive: Lsn | None = None
        size, deadline = 0, 0.0
        pgconn, read_header = self._connection.pgconn, _HEADER.unpack_from
        with publications_there(self._connection):
            while len(messages) < most and size < LARGE_BATCH:
                length, data = pgconn.get_copy_data(1)
                if length >= _HEADER.size and data[0] == _X_LOG_DATA:
                    envelope = bytes(data)
                    messages.append((read_header(envelope)[_START_LSN], envelope[_HEADER.size :]))
                    size += length
                elif length > 0:
                    keepalive = self._keepalive(bytes(data))
                    break
                elif length == 0:
                    pause = timeout
                    if messages:
                        now = time.monotonic()
                        deadline = deadline or now + _LONGEST
                        pause = min(_PAUSE, deadline - now)
                    if pause < 0 or not wait_readable(self._connection, pause):
                        break
                    pgconn.consume_input()
                else:
                    self._ended()
        # Its position is end_lsn as well: in logical replication the two are the same.
        last = max((lsn for lsn, _ in messages), default=0)
        self.received = max(self.received, lsn_of(last), keepalive or lsn_of(0))
        return Received(messages, keepalive)

    def acknowledge(self, lsn: Lsn) -> None:
        """All before this position is safe: tell the server now."""
        if lsn > self._flushed:
            self._flushed = lsn
            self.report()

    def report_in_time(self) -> None:
        """Send a status update if it is time for one; call it while no messages are taken, lest the server gives up."""
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
        while pgconn.put_copy_data(update.build()) == 0:
            pgconn.flush()
        while pgconn.flush():
            time.sleep(0.001)
        self._next_status = time.monotonic() + self._status_interval

    def _start(self, command: bytes) -> None:
        result = self._connection.pgconn.exec_(command)
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise error_of(result)

    def _keepalive(self, data: bytes) -> Lsn:
        message = walsender.parse(data)
        assert isinstance(message, walsender.PrimaryKeepaliveMessage)
        if message.reply_requested:
            self.report()
        return message.end_lsn

    def _ended(self) -> NoReturn:
        result = self._connection.pgconn.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            raise error_of(result)
        raise psycopg.OperationalError("the server ended the replication")


def _patience_of_server(connection: Connection) -> float:
    """How long the server waits for a sign of life, in seconds."""
    query = "SELECT setting::int FROM pg_settings WHERE name = 'wal_sender_timeout'"
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0] / 1000 or math.inf


def _start_replication(slot: str, position: Lsn, options: PluginOptions) -> sql.Composed:
    settings = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in options.items().items()
    ]
    return sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
        sql.Identifier(slot), sql.SQL(str(position)), sql.SQL(", ").join(settings)
    )
