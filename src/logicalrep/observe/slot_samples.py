"""The samples of a slot, from which it is known how far its reader is behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from logicalrep.observe.lag import WalHeads, lag_seconds
from logicalrep.observe.repeating import repeating
from logicalrep.postgres.slots.slot import Slot
from logicalrep_runtime.scalars import Lsn

PAUSE = 5.0
"""The seconds between two samples."""


class SlotSamples:
    """A slot as the server told it, and the lag of its reader; one thread at a time calls the methods."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.last: Slot | None = None
        """The slot when the server was last heard; None before that, or if there was no such slot."""
        self._heads = WalHeads()
        # By how much the server's clock is ahead of this machine's.
        self._ahead = timedelta()

    def record_slot(self, slot: Slot | None) -> None:
        """Take the slot as the server has it now; None if it has none."""
        self.last = slot
        if slot is not None:
            self._ahead = slot.time - datetime.fromtimestamp(time.time(), UTC)
            self._heads.record_end(slot.time, slot.sent_up_to)

    def lag_bytes(self, position: Lsn | None) -> int | None:
        """Return the bytes of WAL that a reader at an LSN lacks; None if either is unknown."""
        return None if self.last is None or position is None else max(self.last.sent_up_to - position, 0)

    def lag_seconds(self, position: Lsn | None, committed: datetime | None) -> float | None:
        """Return the most that a reader may be behind, in seconds; None if that is unknown.

        Args:
            reached: the LSN before which the reader has every commit; it never decreases.
            committed: the time of the last commit that the reader has, in UTC.
        """
        if self.last is None or position is None:
            return None
        server_time = datetime.fromtimestamp(time.time(), UTC) + self._ahead
        return lag_seconds(
            self.lag_bytes(position), server_time, committed, self._heads.caught_up(position), as_of=self.last.time
        )


def sampling(sample: Callable[[], None], on_error: Callable[[Exception], None]) -> AbstractContextManager[None]:
    """Sample every few seconds, in a thread of its own: the reader may wait for its destination for hours.

    Args:
        sample: takes one sample.
        on_error: takes an error of it; the sampling goes on.
    """

    def action() -> None:
        try:
            sample()
        except Exception as error:
            on_error(error)

    return repeating(action, lambda: PAUSE, "logicalrep-sampling")
