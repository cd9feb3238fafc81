"""The choice between peek and the walsender.

A session by SQL decodes four to five times as fast as a walsender, but each one begins at the slot's restart_lsn, which
stays behind the oldest open transaction. A walsender decodes everything once.
"""

from __future__ import annotations

from logicalrep.postgres.slots import Slot
from logicalrep_runtime.scalars import Lsn

NEAR = 16 << 20
"""The WAL before the server's position in bytes that a walsender receives in a moment."""
FAR = 128 << 20
"""The WAL in bytes from which on a query that receives had better read by peek."""
_BATCH = 256 << 20
"""The WAL of a large batch in bytes."""
_DECODED_AGAIN = 2
"""The largest part of a batch that peek may decode before the batch's start; at three it is no faster."""


def suits_peek(slot: Slot, position: Lsn, *, receives: bool, has_end: bool) -> bool:
    """Return whether the next batch from a position is better read by peek than by a walsender.

    A query that `receives` has a walsender, which it costs something to leave; one that `has_end` ends with what is
    there now.
    """
    behind = slot.sent_up_to - position
    least = FAR if receives else 0 if has_end else NEAR
    return behind > least and decoded_again(slot, position) <= _DECODED_AGAIN * max(min(behind, _BATCH), NEAR)


def decoded_again(slot: Slot, position: Lsn) -> int:
    """Return the WAL in bytes before a position that each peek decodes."""
    return max(position - (slot.restart_lsn or position), 0)
