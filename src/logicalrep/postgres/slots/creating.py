"""Creates replication slots that the server can decode. Needs psycopg 3."""

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

_MOST_TRIES = 5
_PATIENCE_FOR_STANDBYS = "10s"
"""The longest wait for the standbys of a failover slot."""


def create_slot(connection: Connection, name: str, *, two_phase: bool = False, failover: bool = False) -> Slot:
    """Create a slot with pgoutput, which has every commit after this function returns.

    A slot without two_phase is advanced past its start, see `advance_past_start`. So that other sessions never see a
    slot that skips commits, a temporary slot is copied; PostgreSQL 11's and failover slots are visible meanwhile.

    Raises:
        UndecodableError: the server repeatedly created slots that it cannot decode.
        SlotError: the server is too old for an option.
    """
    if two_phase or not can_be_moved(connection):
        return _create(connection, name, two_phase=two_phase, failover=failover)
    is_copied = not failover and server_major(connection) >= 12
    temporary_name = f"logicalrep_new_{secrets.token_hex(8)}" if is_copied else name
    for _ in range(_MOST_TRIES):
        slot = _create(connection, temporary_name, temporary=is_copied, failover=failover)
        try:
            if advance_past_start(connection, slot):
                if is_copied:
                    connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s, false)", (temporary_name, name))
                    drop_slot(connection, temporary_name)
                return query_slot(connection, name)
            reason = "the slot cannot be advanced past its start"
        except psycopg.errors.ConfigurationLimitExceeded:
            # No second slot is free.
            return _create(connection, name) if is_copied else query_slot(connection, name)
        except psycopg.errors.InternalError_ as error:
            reason = error.diag.message_primary or ""
        # The server has dropped a temporary slot after an error.
        if find_slot(connection, temporary_name) is not None:
            drop_slot(connection, temporary_name)
    raise UndecodableError.of(f"after {_MOST_TRIES} tries: {reason}")


def can_be_moved(connection: Connection) -> bool:
    """Return whether a new slot can be advanced to the position of a second slot.

    PostgreSQL 10 cannot advance slots, and on a standby the second slot would wait for the primary's next record.
    """
    return server_major(connection) >= 11 and not query_scalar(connection, "SELECT pg_is_in_recovery()")


def advance_past_start(connection: Connection, slot: Slot) -> bool:
    """Advance a new slot past its start; return whether the server now decodes it from a later record.

    If transactions run, a new slot's catalog snapshot misses tables that other sessions alter between the first record
    that it reads and its position. The slot never learns their files, and the first change of such a table ends every
    reader with "could not map filenumber". A second slot waits for all earlier transactions, and its position is a
    record from which the first slot too can be decoded with a complete catalog snapshot. Do not use it for slots with
    two_phase: they would miss transactions that were prepared in between.
    """
    second_slot = f"logicalrep_new_{secrets.token_hex(8)}"
    position = query_scalar(
        connection, "SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput', true)", second_slot
    )
    drop_slot(connection, second_slot)
    with connection.transaction():
        if slot.failover:
            # It would wait for unavailable standbys.
            connection.execute(f"SET LOCAL statement_timeout = '{_PATIENCE_FOR_STANDBYS}'")
        try:
            connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (slot.name, position))
        except psycopg.errors.QueryCanceled:
            if not slot.failover:
                raise
            raise psycopg.Rollback from None
        assert slot.restart_lsn is not None
        advanced_slot = find_slot(connection, slot.name)
        return advanced_slot is not None and (advanced_slot.restart_lsn or slot.restart_lsn) > slot.restart_lsn
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
