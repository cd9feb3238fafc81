"""The health checks that `--listen` serves: liveness, and readiness by the age of the last checkpoint."""

from __future__ import annotations

import time

from logicalrep.observe.counts import Observed
from logicalrep.observe.figures import Standing

_CHECKPOINT_VALID = 120.0
"""The seconds for which a checkpoint proves readiness; an idle run saves a checkpoint every few seconds."""


def health(observed: Observed) -> tuple[bool, str]:
    """Return True and "alive", with a warning if the slot may soon be lost: an answer proves that the process runs."""
    warning = None if observed.slot is None else observed.slot.room_warning
    return True, "alive" if warning is None else f"alive; warning: {warning}"


def readiness(observed: Observed) -> tuple[bool, str]:
    """Return whether a checkpoint was saved in the last two minutes, and a line; stopped tables do not matter."""
    saved = observed.checkpoint_at
    if saved is None:
        return False, "not ready: no checkpoint saved since the start"
    age = time.time() - saved
    if age > _CHECKPOINT_VALID:
        return False, f"not ready: the last checkpoint was saved {age:.0f} s ago"
    states = [table.state for table in observed.tables.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in Standing)
    return True, f"ready: {counts}"
