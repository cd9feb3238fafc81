"""The process that uses a slot: its description, and the waiting until the slot is free. Needs psycopg 3."""

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

_LEAVING = 2.0
"""The seconds that the server may take to end a session whose program has ended."""


def check_free(connection: Connection, slot: Slot) -> None:
    """Raise SlotError, which names the process, if one reads a slot, also a moment later: a reader may be leaving."""
    retries = Retries(_LEAVING)
    while slot.active_pid is not None:
        if not retries.wait():
            raise SlotError(in_use(slot.name, _query_reader(connection, slot.name)), code="SLOT_IN_USE")
        slot = query_slot(connection, slot.name)


def retry_until_free(action: Callable[[], _Result], connection: Connection, name: str, *, patience: float) -> _Result:
    """Return the result of an action on a slot; try again while another process holds the slot.

    Raises SlotError after `patience` seconds, with the process's name, or if the slot has been dropped.
    """
    retries = Retries(patience)
    while True:
        try:
            return action()
        except psycopg.errors.ObjectInUse:
            if not retries.wait():
                raise SlotError(in_use(name, _query_reader(connection, name)), code="SLOT_IN_USE") from None
        except psycopg.errors.UndefinedObject:
            # The slot, or a publication that it would send.
            query_slot(connection, name)
            raise


def in_use(name: str, process: TupleRow | None) -> str:
    """Say that a slot is in use by a process of the server, given by its id and its client's name, address and port."""
    reader = "another process"
    if process is not None and process[0] is not None:
        pid, application, address, port = process
        # A role without the right to see the client's address gets NULL for both; a Unix socket has a port of -1.
        origin = f"from {address}" if address else "from this machine" if port == -1 else "from an unknown address"
        reader = f"process {pid} ({application or 'without a name'}, {origin})"
    return f"replication slot {name!r} is in use by {reader}: stop that reader, or give this one a slot of its own"


def _query_reader(connection: Connection, name: str) -> TupleRow | None:
    return connection.execute(
        "SELECT slot.active_pid, activity.application_name, activity.client_addr, activity.client_port "
        "FROM pg_replication_slots AS slot LEFT JOIN pg_stat_activity AS activity ON activity.pid = slot.active_pid "
        "WHERE slot.slot_name = %s",
        (name,),
    ).fetchone()
