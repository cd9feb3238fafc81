"""A replication connection: START_REPLICATION, what the server sends, and the feedback that it waits for.

psycopg has no replication API, but libpq's functions for COPY are all that it takes. The envelope of each message is
read and written by the generated codec.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import pq, sql

from logicalrep import Lsn, TimestampTz, walsender
from logicalrep_pipeline.connection import ConnectionSettings
from logicalrep_pipeline.peek import wait_readable
from logicalrep_pipeline.plugin_options import PluginOptions
from logicalrep_pipeline.slots import LostPositionError, the_slot, when_free

_UNIX_EPOCH_MICROSECONDS = 946_684_800_000_000


class Walsender:
    """One session of START_REPLICATION on a logical slot.

    >>> with Walsender(settings, "slot", options) as session:
    ...     message = session.receive(timeout=1)
    ...     session.acknowledge(Lsn("16/B374D848"))
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        slot: str,
        options: PluginOptions,
        *,
        position: Lsn | None = None,
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
            status_interval: how often to report to the server at least, in seconds.
            patience: how long to wait for another process to let go of the slot, in seconds.
        """
        self.started_at: Lsn
        """The slot's position when the session started: all that committed from there on comes."""
        self.received = Lsn(0)
        """The last position that the server was seen to have reached."""
        self._flushed = Lsn(0)
        self._status_interval = status_interval
        self._next_status = time.monotonic() + status_interval
        self._connection = settings.connect(replication=True)
        try:
            command = _start_replication(slot, position or Lsn(0), options).as_bytes(self._connection)
            with settings.connect() as observer:
                the_slot(observer, slot)
                when_free(lambda: self._start(command), observer, slot, patience=patience)
                confirmed = the_slot(observer, slot).confirmed_flush_lsn
            assert confirmed is not None
            if position is not None and confirmed > position:
                raise LostPositionError(
                    f"replication slot {slot!r} is at {confirmed}, but this reader only at {position}: what lies "
                    "between was acknowledged by somebody else and cannot be read any more; copy the tables anew and "
                    "start with a new checkpoint"
                )
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

    def receive(self, timeout: float) -> walsender.XLogData | walsender.PrimaryKeepaliveMessage | None:
        """The next message; None if none comes within `timeout` seconds. Answers keepalives, and reports in time.

        Raises psycopg.OperationalError when the connection breaks.
        """
        self.report_in_time()
        data = self._next(timeout)
        if data is None:
            return None
        message = walsender.parse(data)
        if isinstance(message, walsender.XLogData):
            if message.end_lsn > self.received:
                self.received = message.end_lsn
            return message
        assert isinstance(message, walsender.PrimaryKeepaliveMessage)
        if message.end_lsn > self.received:
            self.received = message.end_lsn
        if message.reply_requested:
            self.report()
        return message

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
            send_timestamp=TimestampTz(time.time_ns() // 1000 - _UNIX_EPOCH_MICROSECONDS),
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
            raise psycopg.errors.error_from_result(result, encoding="utf-8")

    def _next(self, timeout: float) -> Any:
        pgconn = self._connection.pgconn
        size, data = pgconn.get_copy_data(1)
        if size == 0:
            if not wait_readable(self._connection, timeout):
                return None
            pgconn.consume_input()
            size, data = pgconn.get_copy_data(1)
        if size > 0:
            return bytes(data)
        if size == 0:
            return None
        result = pgconn.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        raise psycopg.OperationalError("the server ended the replication")


def _start_replication(slot: str, position: Lsn, options: PluginOptions) -> sql.Composed:
    settings = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in options.items().items()
    ]
    return sql.SQL("START_REPLICATION SLOT {} LOGICAL {} ({})").format(
        sql.Identifier(slot), sql.SQL(str(position)), sql.SQL(", ").join(settings)
    )
