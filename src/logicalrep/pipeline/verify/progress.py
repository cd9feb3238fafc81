"""The progress of a destination, and waiting until it has caught up with the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from logicalrep.observe.figures import Standing
from logicalrep.pipeline.state.state import Identity, State
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import Connection, newest_protocol, query_scalar
from logicalrep.postgres.slots.slot import find_slot
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_PAUSE = 0.25
"""The seconds between two reads of the state."""
_ALONE = 3.0
"""The seconds without a reader of the slot after which no process replicates."""
_PAGE, _HEADERS = 8192, (24, 40)
"""Bytes."""


class UnsettledError(LogicalRepError, RuntimeError):
    """A table whose comparison is undecided, with the reason."""

    code = "TABLE_UNDECIDED"
    may_pass = True
    """Whether more work of `logicalrep replicate` may decide it."""


class StoppedError(UnsettledError):
    may_pass = False


class DestinationProgress:
    def __init__(
        self, settings: ConnectionSettings, connection: Connection, storage: Storage, identity: Identity
    ) -> None:
        """`connection` is for this object alone."""
        self._settings = settings
        self._connection = connection
        self._storage = storage
        self._identity = identity

    def state(self, table: TableName) -> TableState:
        """Return the table's state. Raises UnsettledError if the table is not replicated, or is stopped."""
        state = State.read(self._storage).tables.get(str(table))
        if state is None:
            raise UnsettledError("it is no longer replicated")
        if state.state is Standing.STOPPED:
            raise StoppedError(f"it is stopped: {state.error}")
        return state

    @property
    def is_followed(self) -> bool:
        slot = find_slot(self._connection, self._identity.slot)
        return slot is not None and slot.active_pid is not None

    def wait(
        self, table: TableName, oid: int, lsn: Lsn, deadline: float, while_waiting: Callable[[], None] | None = None
    ) -> None:
        """Wait for every commit before an LSN; call `while_waiting` repeatedly.

        Raises UnsettledError at the deadline (of `time.monotonic`), or if changes remain and no process replicates.
        """
        alone_since: float | None = None
        while True:
            state = self.state(table)
            # A table in the state FOLLOWING has all commits up to its LSN, and none after it.
            if state.state is Standing.FOLLOWING and state.lsn + 1 >= lsn:
                return
            time_of_reading = time.monotonic()
            slot = find_slot(self._connection, self._identity.slot)
            if slot is not None and slot.active_pid is not None:
                alone_since = None
            else:
                alone_since = time_of_reading if alone_since is None else alone_since
                if (
                    slot is not None
                    and state.state is Standing.FOLLOWING
                    and not self._has_changes_left(oid, state, lsn)
                ):
                    return
            if alone_since is not None and time_of_reading - alone_since >= _ALONE:
                raise UnsettledError(
                    "changes are not applied yet and no replicate runs: run logicalrep replicate --once first"
                )
            if time_of_reading >= deadline:
                raise UnsettledError(
                    "it is loading"
                    if state.state is Standing.LOADING
                    else f"it is at {state.lsn}, and the server was at {lsn}"
                )
            if while_waiting is None:
                time.sleep(_PAUSE)
            while while_waiting is not None and time.monotonic() - time_of_reading < _PAUSE:
                while_waiting()

    def _has_changes_left(self, oid: int, state: TableState, lsn: Lsn) -> bool:
        """Return whether the slot, which no process reads, may have changes of a table that the destination lacks."""
        with self._settings.connect() as connection:
            publications = (self._identity.publication,)
            options = PluginOptions(publication_names=publications, proto_version=newest_protocol(connection))
            slot, max_messages = self._identity.slot, self._storage.limits.peeked_messages
            messages = peek(connection, slot, options, upto_lsn=lsn, upto_messages=max_messages, patience=0)
            numbers = count(1)
            counted = (message for message, _ in zip(messages, numbers, strict=False))
            rows = change_rows(counted, options.decoder())
            # Read all messages, so that the session is free again.
            oids = {row["relation_id"] for row in rows if row["commit_lsn"] and Lsn(row["commit_lsn"]) > state.lsn}
            return oid in oids or next(numbers) > max_messages


def end_of_wal(connection: Connection) -> Lsn:
    """Return the end of the last WAL record, after every commit that an earlier snapshot sees."""
    end = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END"
    lsn = Lsn(query_scalar(connection, f"SELECT {end}"))
    # The next record begins after the header of a page that PostgreSQL has not begun; sent positions end before it.
    return Lsn(lsn - lsn % _PAGE) if lsn % _PAGE in _HEADERS else lsn
