"""Temporary copies of a slot, with which several sessions decode parts of its WAL in parallel.

A slot has one session at a time, which decodes the whole range before it sends the first row. Each copy is advanced to
the start of a later part, which its session decodes. The server drops a copy when its session ends.
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
from logicalrep.postgres.server import Connection, server_major
from logicalrep.postgres.slots.slot import Slot
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    from logicalrep.arrow.message_batch import MessageBatch

# One slot remains free for other uses, for example for the tables that a subscription copies.
_COPY = """
SELECT pg_copy_logical_replication_slot(%s, %s, true)
WHERE (SELECT count(*) FROM pg_replication_slots) + 1 < current_setting('max_replication_slots')::int
"""


class SlotCopy:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    def decode(self, options: PluginOptions, start: Lsn, upto_lsn: Lsn) -> Iterator[MessageBatch]:
        """Return the message batches of commits at or after `start`; the server starts decoding at once."""
        return peek_batches_from(self._connection, self.name, options, start, upto_lsn)

    def close(self) -> None:
        with suppress(psycopg.Error):
            if self._connection.info.transaction_status == TransactionStatus.ACTIVE:
                self._connection.cancel_safe(timeout=10)
        self._connection.close()


def can_be_copied(connection: Connection, slot: Slot) -> bool:
    """Return whether a copy sends the same messages as the slot.

    Slots can be copied since PostgreSQL 12. A copy sends no prepared transactions, and does not wait for standbys.
    Copies on a standby are untested.
    """
    is_plain = not slot.two_phase and not slot.failover
    return server_major(connection) >= 12 and slot.timeline is not None and is_plain


@contextmanager
def create_copies(settings: ConnectionSettings, slot: str, number: int) -> Iterator[list[SlotCopy]]:
    """Yield `number` copies of a slot, or fewer if the server's limits do not allow them; close them at the end."""
    copies: list[SlotCopy] = []
    try:
        while len(copies) < number and (copy := _copy(settings, slot)) is not None:
            copies.append(copy)
        yield copies
    finally:
        for copy in copies:
            copy.close()


def _copy(settings: ConnectionSettings, slot: str) -> SlotCopy | None:
    try:
        connection = settings.connect()
    except psycopg.OperationalError:
        # A connection limit, or an unavailable server, which the slot's own reader reports.
        return None
    with ExitStack() as unless_copied:
        unless_copied.callback(connection.close)
        name = f"logicalrep_{connection.info.backend_pid}"
        # The slot's own reader reports a missing slot.
        with suppress(psycopg.errors.ConfigurationLimitExceeded, psycopg.errors.UndefinedObject):
            if connection.execute(_COPY, (slot, name)).fetchone() is not None:
                unless_copied.pop_all()
                return SlotCopy(connection, name)
    return None
