"""Advances and drops slots through SQL. Needs psycopg 3."""

from __future__ import annotations

import psycopg
from psycopg import sql

from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep.postgres.slots.usage import retry_until_free
from logicalrep_runtime.scalars import Lsn


def advance_slot(connection: Connection, slot: Slot, lsn: Lsn, *, patience: float = 30) -> None:
    """Acknowledge every commit before a position; nothing happens if the slot is at or after it."""
    if slot.confirmed.lsn >= lsn:
        return
    try:
        retry_until_free(
            lambda: connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (slot.name, str(lsn))),
            connection,
            slot.name,
            patience=patience,
        )
    except psycopg.errors.ObjectNotInPrerequisiteState:
        # "cannot advance replication slot to X, minimum is Y": another process has advanced it meanwhile.
        if query_slot(connection, slot.name).confirmed.lsn < lsn:
            raise


def drop_slot(connection: Connection, name: str) -> None:
    """Drop a slot; wait up to 30 seconds if a process that has just ended still uses the slot."""
    drop = sql.SQL("SELECT pg_drop_replication_slot({})").format(name)
    retry_until_free(lambda: connection.execute(drop), connection, name, patience=30)
