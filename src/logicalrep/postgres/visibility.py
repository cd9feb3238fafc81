"""The transactions that a session's queries see: a walsender may send a commit earlier. Needs psycopg 3.

Source: "System Information Functions", pg_current_snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from logicalrep.postgres.server import HEAD, Connection, query_scalar, server_major
from logicalrep_runtime.scalars import Lsn

_IDS = 1 << 32


@dataclass(frozen=True, slots=True)
class Visibility:
    end: int
    """The snapshot sees no transactions with this 64-bit id or a greater id."""
    running: frozenset[int]
    """Smaller ids of transactions that the snapshot does not see."""

    def sees(self, xid: int) -> bool:
        """Return whether the snapshot sees a committed transaction, by the 32-bit id in messages."""
        distance = xid_distance(xid, self.end)
        return distance < 0 and self.end + distance not in self.running


def xid_distance(xid: int, other: int) -> int:
    """Return the distance from the 32-bit id `other` to `xid`; negative if `xid` is older."""
    return (xid - other + _IDS // 2) % _IDS - _IDS // 2


def query_visibility(connection: Connection) -> Visibility:
    """Return the visibility for the session's transaction, or for its next statement outside of a transaction."""
    _, end, running = str(query_scalar(connection, f"SELECT {_snapshot(connection)}")).split(":")
    return Visibility(int(end), frozenset(int(xid) for xid in running.split(",") if xid))


def query_moment(connection: Connection) -> tuple[str, datetime, Lsn]:
    """Return the transactions that a statement sees, the server's time, and a later end of its WAL, in one query.

    While the visibility is equal, no transaction has ended, and the catalog has not changed.
    """
    replayed = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END"
    query = f"SELECT concat_ws(' ', {_snapshot(connection)}, {replayed}), now(), {HEAD}"
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0], row[1], Lsn(row[2])


def _snapshot(connection: Connection) -> str:
    return "pg_current_snapshot()::text" if server_major(connection) >= 13 else "txid_current_snapshot()::text"
