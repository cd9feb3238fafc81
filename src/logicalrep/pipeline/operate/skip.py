"""Requests to skip a commit that a table refused."""

from __future__ import annotations

from logicalrep.observe.figures import Standing
from logicalrep.pipeline.operate.status import read_identity
from logicalrep.pipeline.state.requests import request_skip
from logicalrep.pipeline.state.state import State, StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import query_server_identity
from logicalrep.postgres.slots.slot import find_slot
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn


class SkipError(LogicalRepError, ValueError):
    """A commit that cannot be skipped."""

    code = "SKIP_REFUSED"


def skip(settings: ConnectionSettings, storage: Storage, table: TableName, lsn: Lsn) -> bool:
    """Request that a table skips the commit at which it is stopped, and applies the later changes.

    The replicating process repeats these checks: it skips no other commit.

    Args:
        settings: the server.
        storage: the destination.
        table: the table.
        lsn: the LSN of the commit, as `logicalrep status` shows it.

    Returns True if a running process takes the request, and False if the next process will.

    Raises:
        SkipError: the table is not stopped at this commit, or its later changes are not buffered.
        StateError: nothing is replicated to the destination, it has no such table, or it belongs to another server.

    Example:
        >>> skip(settings, Storage("./lake"), TableName("public", "orders"), Lsn("0/1A2B3C8"))
    """
    identity = read_identity(storage)
    tables = State.read(storage).tables
    state = tables.get(str(table))
    if state is None:
        raise StateError(f"{storage.uri} has no table {table}; it has {', '.join(tables) or 'none'}")
    if state.state is not Standing.STOPPED:
        raise SkipError(f"{table} is not stopped: there is no commit to skip")
    if state.refused is None:
        raise SkipError(
            f"{table} is not stopped at a commit, or its later changes are no longer buffered: run logicalrep resync "
            f"{table} with the same --dsn and --to"
        )
    if Lsn(state.refused) != lsn:
        raise SkipError(f"{table} is stopped at the commit {state.refused}, not at {lsn}")
    with settings.connect() as connection:
        system, database = query_server_identity(connection)
        identity.check(system_identifier=system, database=database)
        slot = find_slot(connection, identity.slot)
    request_skip(storage, table, lsn)
    return slot is not None and slot.active_pid is not None
