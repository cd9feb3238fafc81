"""Describes the process that uses a slot, and waits until the slot is free. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg.rows import TupleRow

from logicalrep.postgres.retries import Retries
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.slot import Slot, query_slot

_Result = TypeVar("_Result")

_SESSION_END_TIMEOUT = 2.0
"""The seconds that the server may need to end the session of a program that has ended."""


def check_free(connection: Connection, slot: Slot) -> None:
    """Raise SlotError, with the process, if a process still uses a slot after a moment."""
    retries = Retries(_SESSION_END_TIMEOUT)
    while slot.active_pid is not None:
        if not retries.wait():
            raise SlotError(in_use(slot.name, _query_reader(connection, slot.name)), code="SLOT_IN_USE")
        slot = query_slot(connection, slot.name)


def retry_until_free(action: Callable[[], _Result], connection: Connection, name: str, *, patience: float) -> _Result:
    """Retry while another process uses the slot. Raises SlotError after `patience` seconds, or if it was dropped."""
    retries = Retries(patience)
    while True:
        try:
            return action()
        except psycopg.errors.ObjectInUse:
            if not retries.wait():
                raise SlotError(in_use(name, _query_reader(connection, name)), code="SLOT_IN_USE") from None
        except psycopg.errors.UndefinedObject:
            # The slot or a publication is missing.
            query_slot(connection, name)
            raise


def in_use(name: str, process: TupleRow | None) -> str:
    """Return a sentence about a slot in use.

    `process` has the process id and the client's name, address and port; None if unknown.
    """
    reader = "another process"
    if process is not None and process[0] is not None:
        pid, application, address, port = process
        # A role without the right to see the client's address gets NULL for both; a Unix socket has a port of -1.
        origin = f"from {address}" if address else "from this machine" if port == -1 else "from an unknown address"
        reader = f"process {pid} ({application or 'without a name'}, {origin})"
    return f"replication slot {name!r} is in use by {reader}: stop that reader, or give this reader its own slot"


def _query_reader(connection: Connection, name: str) -> TupleRow | None:
    return connection.execute(
        "SELECT slot.active_pid, activity.application_name, activity.client_addr, activity.client_port "
        "FROM pg_replication_slots AS slot LEFT JOIN pg_stat_activity AS activity ON activity.pid = slot.active_pid "
        "WHERE slot.slot_name = %s",
        (name,),
    ).fetchone()
