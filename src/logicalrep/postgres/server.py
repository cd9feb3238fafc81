"""Queries for a server's version, identity, WAL end and time. Needs psycopg 3."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from logicalrep_protocol import versions
from logicalrep_runtime.scalars import Lsn

Connection = psycopg.Connection[TupleRow]

# The first major version of PostgreSQL with each protocol version.
_SERVERS = {1: 10, 2: 14, 3: 15, 4: 16}

HEAD = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"
"""The SQL expression for the end of a primary's or a standby's WAL."""

_OLDEST_WRITER = """
SELECT what, began FROM (
  SELECT concat('process ', pid, ' (' || nullif(application_name, '') || ')') AS what, xact_start AS began,
    backend_xid AS xid
  FROM pg_stat_activity WHERE backend_xid IS NOT NULL
  UNION ALL SELECT format('the prepared transaction %L', gid), prepared, transaction FROM pg_prepared_xacts
) AS writers ORDER BY age(xid) DESC LIMIT 1
"""


def server_major(connection: Connection) -> int:
    return connection.info.server_version // 10000


def query_scalar(connection: Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query, parameters or None).fetchone()
    return None if row is None else row[0]


def query_server_identity(connection: Connection) -> tuple[int, str]:
    row = connection.execute("SELECT system_identifier, current_database() FROM pg_control_system()").fetchone()
    assert row is not None
    return row[0], row[1]


def newest_protocol(connection: Connection) -> int:
    major = server_major(connection)
    return max(version for version in versions.PARSE if _SERVERS[version] <= major)


def query_wal_head(connection: Connection) -> Lsn:
    return Lsn(query_scalar(connection, f"SELECT {HEAD}"))


def query_server_time(connection: Connection) -> datetime:
    time: datetime = query_scalar(connection, "SELECT now()")
    return time


def query_next_xid(connection: Connection) -> int:
    """Return the next 64-bit transaction id of the server."""
    return int(query_scalar(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))


def query_oldest_writer(connection: Connection) -> tuple[str, datetime | None] | None:
    """Return the description and the start of the oldest transaction that has written; None without one.

    The start is None if another role runs the transaction and this role lacks `pg_read_all_stats`.
    """
    row = connection.execute(_OLDEST_WRITER).fetchone()
    return None if row is None else (row[0], row[1])


def query_oldest_load(connection: Connection) -> datetime | None:
    """Return the start of the oldest snapshot of a load in this database; None without a load."""
    # A walsender has no xact_start, but becomes "idle in transaction" when it exports the snapshot.
    since: datetime | None = query_scalar(
        connection,
        "SELECT min(activity.state_change) FROM pg_replication_slots AS slot JOIN pg_stat_activity AS activity "
        "ON activity.pid = slot.active_pid WHERE activity.state = 'idle in transaction' AND slot.temporary "
        "AND slot.slot_name ~ '^logicalrep_load_' AND slot.database = current_database()",
    )
    return since
