"""The transactions that a session's queries see, for positions of the stream. Needs psycopg 3.

A walsender may send a transaction before queries see it: it is told of the commit by the WAL. Source: "System
Information Functions", pg_current_snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

from logicalrep.postgres.server import Connection, query_scalar, server_major

_IDS = 1 << 32


@dataclass(frozen=True, slots=True)
class Visibility:
    """The transactions that a snapshot sees."""

    end: int
    """No transaction with this id or a greater one is seen; ids have 64 bits."""
    running: frozenset[int]
    """The smaller ids of transactions that are not seen."""

    def sees(self, xid: int) -> bool:
        """Return whether a committed transaction is seen, by the 32 bits of its id that messages have.

        Example:
            >>> Visibility(105, frozenset({102})).sees(102)
            False
        """
        distance = xid_distance(xid, self.end)
        return distance < 0 and self.end + distance not in self.running


def xid_distance(xid: int, other: int) -> int:
    """Return how many ids a transaction comes after another one, by 32 bits of each; negative for before.

    Example:
        >>> xid_distance(3, (1 << 32) - 1)
        4
    """
    return (xid - other + _IDS // 2) % _IDS - _IDS // 2


def query_visibility(connection: Connection) -> Visibility:
    """Return which transactions the session's present transaction sees, or its next statement outside of one."""
    function = "pg_current_snapshot" if server_major(connection) >= 13 else "txid_current_snapshot"
    _, end, running = str(query_scalar(connection, f"SELECT {function}()::text")).split(":")
    return Visibility(int(end), frozenset(int(xid) for xid in running.split(",") if xid))
