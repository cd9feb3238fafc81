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
    """Request that a table skips its refused commit; the replicating process repeats the checks. Return whether a
    running process takes it. Raises SkipError or StateError."""
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
