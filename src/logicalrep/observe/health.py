"""The checks of health that `--listen` answers: whether the process lives, and whether it saves checkpoints."""

from __future__ import annotations

import time

from logicalrep.observe.counts import Observed
from logicalrep.observe.figures import Standing

_FRESH = 120.0
"""The seconds for which a checkpoint shows that the work goes on; an idle run saves one every few seconds."""


def health(observed: Observed) -> tuple[bool, str]:
    """Return that the process lives: whoever gets the answer knows it, whatever it waits for."""
    return True, "alive"


def readiness(observed: Observed) -> tuple[bool, str]:
    """Return whether checkpoints are being saved, and why not; stopped tables are named, and do not count.

    Example:
        >>> readiness(Observed())
        (False, 'not ready: no checkpoint is saved since the start')
    """
    saved = observed.checkpoint_at
    if saved is None:
        return False, "not ready: no checkpoint is saved since the start"
    age = time.time() - saved
    if age > _FRESH:
        return False, f"not ready: the last checkpoint was saved {age:.0f} s ago"
    states = [table.state for table in observed.tables.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in Standing)
    return True, f"ready: {counts}"
