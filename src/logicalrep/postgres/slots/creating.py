"""The creation of replication slots that can be read. Needs psycopg 3."""

from __future__ import annotations

import secrets

import psycopg
from psycopg import pq, sql

from logicalrep.postgres.connection import ConnectionSettings, error_of
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.postgres.silence import execute_command
from logicalrep.postgres.slots.advancing import drop_slot
from logicalrep.postgres.slots.errors import SlotError, UndecodableError
from logicalrep.postgres.slots.slot import Slot, find_slot, query_slot
from logicalrep.postgres.slots.usage import retry_until_free

_TRIES = 5
"""The number of slots that are made, one after another, until one can be read."""
_PATIENCE_FOR_STANDBYS = "10s"
"""The longest wait for the standbys that a failover slot waits for."""


def create_slot(connection: Connection, name: str, *, two_phase: bool = False, failover: bool = False) -> Slot:
    """Create a slot with pgoutput. Once others can see it, every later commit can be read from it.

    A slot without two_phase is moved past its beginning, see `settle`. Commits in between are not read, so it is made
    as a temporary slot, and gets its name as a copy of that. PostgreSQL 11 copies none, and a copy has no failover:
    these are moved where they can be seen, and every commit after this function returns is read.

    Raises:
        UndecodableError: the server made several slots that cannot be read.
        SlotError: the server is too old for an option.
    """
    if two_phase or not can_be_moved(connection):
        return _create(connection, name, two_phase=two_phase, failover=failover)
    is_copied = not failover and server_major(connection) >= 12
    made = f"logicalrep_new_{secrets.token_hex(8)}" if is_copied else name
    for _ in range(_TRIES):
        slot = _create(connection, made, temporary=is_copied, failover=failover)
        try:
            if settle(connection, slot):
                if is_copied:
                    connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s, false)", (made, name))
                    drop_slot(connection, made)
                return query_slot(connection, name)
            reason = "its beginning cannot be left behind"
        except psycopg.errors.ConfigurationLimitExceeded:
            # There is no room for a second slot.
            return _create(connection, name) if is_copied else query_slot(connection, name)
        except psycopg.errors.InternalError_ as error:
            reason = error.diag.message_primary or ""
        # The server has dropped a temporary slot after an error.
        if find_slot(connection, made) is not None:
            drop_slot(connection, made)
    raise UndecodableError.of(f"after {_TRIES} tries: {reason}")


def can_be_moved(connection: Connection) -> bool:
    """Return whether a new slot can be moved to the position of a second one.

    PostgreSQL 10 moves none, and on a standby the second one would wait for the primary's next record.
    """
    return server_major(connection) >= 11 and not query_scalar(connection, "SELECT pg_is_in_recovery()")


def settle(connection: Connection, slot: Slot) -> bool:
    """Move a new slot past its beginning; return whether the server reads it from a later record now.

    While transactions run, a new slot's view of the catalog misses what others alter between the first record that it
    reads and its position. Their files are unknown to it for ever, and the first change of such a table ends every
    reader with "could not map filenumber". A second slot waits for all transactions from before it, at a record from
    which the first one can be read too, with a whole view. Changes that were prepared meanwhile would be missed, so
    this is not for slots with two_phase.
    """
    other = f"logicalrep_new_{secrets.token_hex(8)}"
    position = query_scalar(
        connection, "SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput', true)", other
    )
    drop_slot(connection, other)
    with connection.transaction():
        if slot.failover:
            # It would wait for standbys that are away.
            connection.execute(f"SET LOCAL statement_timeout = '{_PATIENCE_FOR_STANDBYS}'")
        try:
            connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (slot.name, position))
        except psycopg.errors.QueryCanceled:
            if not slot.failover:
                raise
            raise psycopg.Rollback from None
        assert slot.restart_lsn is not None
        moved = find_slot(connection, slot.name)
        return moved is not None and (moved.restart_lsn or slot.restart_lsn) > slot.restart_lsn
    return True


def _create(
    connection: Connection, name: str, *, temporary: bool = False, two_phase: bool = False, failover: bool = False
) -> Slot:
    arguments: list[object] = [name, "pgoutput", temporary]
    for option, wanted, since in (("two_phase", two_phase, 14), ("failover", failover, 17)):
        if wanted and server_major(connection) < since:
            raise SlotError(f"{option} needs PostgreSQL {since} or later", code="SERVER_LACKS_OPTION")
        if server_major(connection) >= since:
            arguments.append(wanted)
    connection.execute(f"SELECT pg_create_logical_replication_slot({', '.join(['%s'] * len(arguments))})", arguments)
    return query_slot(connection, name)


def keep_on_standbys(settings: ConnectionSettings, name: str) -> None:
    """Have standbys keep a slot that was made without failover. Needs PostgreSQL 17."""
    with settings.connect() as connection, settings.connect(replication=True) as walsender:
        change = sql.SQL("ALTER_REPLICATION_SLOT {} (FAILOVER true)").format(sql.Identifier(name))

        def run() -> None:
            result = execute_command(walsender, change.as_bytes(walsender))
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise error_of(result)

        retry_until_free(run, connection, name, patience=30)
