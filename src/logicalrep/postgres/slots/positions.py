"""The position of a slot's reader: whether the server's WAL contains it, and whether the slot is past it."""

from __future__ import annotations

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import Slot
from logicalrep.postgres.timelines import WalPosition, why_not_part_of
from logicalrep_runtime.scalars import Lsn


def why_not_within_wal(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> str | None:
    """Return the reason why the WAL of the slot's server does not contain the position of a reader; None if it may."""
    reason = why_not_part_of(settings, position, slot.timeline)
    if reason is None and slot.head < position.lsn:
        reason = (
            f"this reader is at {position.lsn}, but the server's WAL ends at {slot.head}: it was restored from a "
            "backup, took over from a server that was ahead of it, or is another one"
        )
    return reason


def check_within_wal(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> None:
    """Raise LostPositionError if the WAL of the slot's server does not contain the position of a reader."""
    reason = why_not_within_wal(settings, slot, position)
    if reason is not None:
        raise diverged(reason)


def diverged(reason: str) -> LostPositionError:
    """Return the error of a reader whose position the server's WAL does not contain, for a reason."""
    error = LostPositionError(f"{reason}; copy the tables again and start with a new checkpoint", code="WAL_DIVERGED")
    error.reason = reason
    return error


def check_not_passed(slot: str, at: Lsn, position: Lsn) -> None:
    """Raise LostPositionError if a slot was at an LSN after the position of its reader."""
    if at > position:
        raise LostPositionError(
            f"replication slot {slot!r} was at {at} when this reader was at {position}: the changes between were "
            "acknowledged by another reader and cannot be read any more; give each reader a slot of its own, copy the "
            "tables again and start with a new checkpoint"
        )
