"""Samples of a slot, and the lag of the slot's reader."""

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
    """The last state of a slot, and the lag of its reader; not safe for several threads."""

    def __init__(self) -> None:
        self.last: Slot | None = None
        """The last recorded slot; None before the first record, or if the slot did not exist."""
        self._heads = WalHeads()
        # The server's clock minus this machine's clock.
        self._ahead = timedelta()

    def record_slot(self, slot: Slot | None) -> None:
        self.last = slot
        if slot is not None:
            self._ahead = slot.time - datetime.fromtimestamp(time.time(), UTC)
            self._heads.record_end(slot.time, slot.sent_up_to)

    def lag_bytes(self, position: Lsn | None) -> int | None:
        return None if self.last is None or position is None else max(self.last.sent_up_to - position, 0)

    def lag_seconds(self, position: Lsn | None, committed: datetime | None) -> float | None:
        """Return an upper bound; None if unknown. Positions never decrease; `committed` is of the last commit."""
        if self.last is None or position is None:
            return None
        server_time = datetime.fromtimestamp(time.time(), UTC) + self._ahead
        return lag_seconds(
            self.lag_bytes(position), server_time, committed, self._heads.caught_up(position), as_of=self.last.time
        )


def sampling(sample: Callable[[], None], on_error: Callable[[Exception], None]) -> AbstractContextManager[None]:
    """Sample every `PAUSE` seconds in a separate thread: the reader's own may wait for its destination for hours."""

    def action() -> None:
        try:
            sample()
        except Exception as error:
            on_error(error)

    return repeating(action, lambda: PAUSE, "logicalrep-sampling")
