"""The copies of a failover slot on standbys. Only a standby knows its copy: the primary shows no standby's slots."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import Connection, query_scalar

# A temporary copy is not usable yet: the standby has not reached the slot's position.
_SYNCED = """
SELECT EXISTS (
    SELECT FROM pg_replication_slots
    WHERE slot_name = %s AND synced AND NOT temporary AND invalidation_reason IS NULL
)
"""


def query_standby_copies(settings: ConnectionSettings, slot: str) -> dict[str, bool | None]:
    """Return whether each standby among the servers of a DSN would keep a slot after its promotion; None for a server
    that does not answer. Needs PostgreSQL 17.

    The result is empty if the DSN names only one server.
    """
    copies: dict[str, bool | None] = {}
    servers = settings.each_server
    for server in servers if len(servers) > 1 else ():
        try:
            with server.connect() as connection:
                if query_scalar(connection, "SELECT pg_is_in_recovery()"):
                    copies[server.server] = bool(query_scalar(connection, _SYNCED, slot))
        except psycopg.OperationalError:
            copies[server.server] = None
    return copies


def standby_texts(copies: Mapping[str, bool | None]) -> dict[str, str]:
    """Return a sentence about each server in a result of `query_standby_copies`, or one about all if it is empty."""
    texts = {
        True: "has a synchronized copy of the slot",
        False: "is a standby without a synchronized copy of the slot: after its promotion, all tables are reloaded",
        None: "does not answer, and may be a standby without a copy of the slot",
    }
    if not copies:
        return {
            "": "the primary does not show whether a standby has a synchronized copy of the slot: name the standby in "
            "--dsn too, as in host=a,b target_session_attrs=read-write"
        }
    return {server: f"{server} {texts[is_synced]}" for server, is_synced in copies.items()}


def standby_warnings(settings: ConnectionSettings, connection: Connection, slot: str) -> list[str]:
    """Return the reasons why a failover slot may not survive a failover; `connection` leads to the primary."""
    warnings = []
    if not query_scalar(connection, "SELECT current_setting('synchronized_standby_slots')"):
        warnings.append(
            "synchronized_standby_slots is empty: replicate may get commits that a standby lacks, and would reload all "
            "tables after its promotion; name the standby's physical slot there"
        )
    copies = query_standby_copies(settings, slot)
    texts = standby_texts(copies)
    return [*warnings, *(texts[server] for server in texts if copies.get(server) is not True)]
