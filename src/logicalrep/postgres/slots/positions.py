"""Checks that the server's WAL contains a reader's position, and that the slot is not past the position."""

from __future__ import annotations

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import Slot
from logicalrep.postgres.timelines import WalPosition, wal_divergence_reason
from logicalrep_runtime.scalars import Lsn


def outside_wal_reason(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> str | None:
    """Return why the WAL of the slot's server does not contain a reader's position; None if it may contain it."""
    reason = wal_divergence_reason(settings, position, slot.timeline)
    if reason is None and slot.head < position.lsn:
        reason = (
            f"this reader is at {position.lsn}, but the server's WAL ends at {slot.head}: it was restored from a "
            "backup, took over from a server that was ahead of it, or is another one"
        )
    return reason


def check_within_wal(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> None:
    """Raise LostPositionError if the WAL of the slot's server does not contain a reader's position."""
    reason = outside_wal_reason(settings, slot, position)
    if reason is not None:
        raise divergence_error(reason)


def divergence_error(reason: str) -> LostPositionError:
    return LostPositionError.for_stream(reason, code="WAL_DIVERGED")


def check_not_passed(slot: str, at: Lsn, position: Lsn) -> None:
    """Raise LostPositionError if a slot's position `at` was after its reader's position."""
    if at > position:
        raise LostPositionError.for_stream(
            f"replication slot {slot!r} was at {at} when this reader was at {position}: the changes between were "
            "acknowledged by another reader and are lost",
            "give each reader its own slot",
        )
