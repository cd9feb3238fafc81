"""Temporary copies of a slot, so that several sessions of the server decode parts of it at the same time.

A slot has one session at a time, which decodes all that it is asked for before it sends the first row. A copy is moved
on to where a later part begins, and its session decodes that meanwhile. It goes with its session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import TransactionStatus

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.peek import peek_batches_from
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.slots import Connection, Slot, server_major
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    from logicalrep.arrow.message_batch import MessageBatch

# One slot is left for others: the workers of a subscription, for example, need one for each table that they copy.
_COPY = """
SELECT pg_copy_logical_replication_slot(%s, %s, true)
WHERE (SELECT count(*) FROM pg_replication_slots) + 1 < current_setting('max_replication_slots')::int
"""


class SlotCopy:
    """A temporary copy of a slot, and the session that it belongs to."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    def decode(self, options: PluginOptions, start: Lsn, upto_lsn: Lsn) -> Iterator[MessageBatch]:
        """What commits at or after `start`, as `peek_batches` gives it; the server begins at once."""
        return peek_batches_from(self._connection, self.name, options, start, upto_lsn)

    def close(self) -> None:
        """End the session, whatever it is doing; the server drops the copy."""
        with suppress(psycopg.Error):
            if self._connection.info.transaction_status == TransactionStatus.ACTIVE:
                self._connection.cancel()
        self._connection.close()


def can_be_copied(connection: Connection, slot: Slot) -> bool:
    """Whether a copy gives what the slot gives.

    PostgreSQL 12 is the first to copy slots. A copy sends no prepared transactions, and does not wait for standbys. On
    a standby it has not been tried.
    """
    is_plain = not slot.two_phase and not slot.failover
    return server_major(connection) >= 12 and slot.timeline is not None and is_plain


@contextmanager
def copies_of(settings: ConnectionSettings, slot: str, number: int) -> Iterator[list[SlotCopy]]:
    """So many copies of a slot, or fewer where the server has no room for them; they are closed at the end."""
    copies: list[SlotCopy] = []
    try:
        while len(copies) < number and (copy := _copy(settings, slot)) is not None:
            copies.append(copy)
        yield copies
    finally:
        for copy in copies:
            copy.close()


def _copy(settings: ConnectionSettings, slot: str) -> SlotCopy | None:
    """A copy; None where the server has no slot or connection left."""
    try:
        connection = settings.connect()
    except psycopg.OperationalError:
        # libpq tells a limit by its text alone; where the server is away, who reads the slot itself finds out.
        return None
    with ExitStack() as unless_copied:
        unless_copied.callback(connection.close)
        name = f"logicalrep_{connection.info.backend_pid}"
        # Who reads the slot itself finds out as well that it is gone.
        with suppress(psycopg.errors.ConfigurationLimitExceeded, psycopg.errors.UndefinedObject):
            if connection.execute(_COPY, (slot, name)).fetchone() is not None:
                unless_copied.pop_all()
                return SlotCopy(connection, name)
    return None
