"""The driver's connection to the server, which both modes share, and the figures of its query."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from logicalrep.observe.log import log_to_standard_error as to_standard_error
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.server import Connection
from logicalrep.postgres.sessions.server_connection import ServerConnection
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.positions import check_within_wal
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.monitoring.monitor import Monitor
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.slot_locks import lock_slot
from logicalrep.transactions.logs import logger, warn
from logicalrep_runtime.errors import LogicalRepError

_Result = TypeVar("_Result")

log = logger("logicalrep")


class Driver:
    """The driver's side of a query: its connection to the server, checked before use, and its figures."""

    def __init__(
        self, options: SourceOptions, check_table: Callable[[Connection], None], *, locks: bool = False
    ) -> None:
        """Only `run` connects. `check_table` is called once, before the first action. `locks`: hold the slot's lock."""
        self._options = options
        self._check_table = check_table
        self._connection = ServerConnection(
            options.connection, options.retry_timeout, prepare=self._lock if locks else None
        )
        self._checked = False
        self._monitor: Monitor | None = None

    @property
    def monitor(self) -> Monitor | None:
        if self._monitor is None and self._options.listen is not None:
            self._monitor = Monitor(self._options.connection, self._options.the_slot, self._options.listen)
        return self._monitor

    def run(self, action: Callable[[Connection], _Result]) -> _Result:
        try:
            return self._connection.run(lambda connection: action(self._check(connection)))
        except LogicalRepError as error:
            # Spark repeats the traceback three times; the sentence alone says more.
            raise error.with_traceback(None) from None

    def stop(self) -> None:
        self._connection.close()
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None

    def _lock(self, connection: Connection) -> None:
        # The session of a broken connection may still hold the lock.
        lock_slot(connection, self._options.the_slot, patience=self._options.retry_timeout)

    def _check(self, connection: Connection) -> Connection:
        if self._connection.restarts and self.monitor is not None:
            self.monitor.restarts = self._connection.restarts
        if not self._checked:
            self._check_table(connection)
            warn(check(connection, self._options.needs))
            self._checked = True
        return connection


def acknowledge_position(connection: Connection, options: SourceOptions, position: WalPosition) -> None:
    slot = query_slot(connection, options.the_slot)
    # Another server would take the position for its own, and skip its changes before that.
    check_within_wal(options.connection, slot, position)
    advance_slot(connection, slot, position.lsn)


def log_to_standard_error() -> None:
    """Log to standard error unless the program has configured logging for Spark's Python workers."""
    if not log.handlers and not logging.getLogger().handlers:
        to_standard_error(log)
