"""The tries of a table's load: pauses double, and a number of equal failures ends the tries."""

from __future__ import annotations

import math
import re
import time

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0
"""The seconds before the second try, and the most seconds before a later try."""


class Tries:
    def __init__(self) -> None:
        self._reason = ""
        self._equal = 0
        self._pause = _FIRST_PAUSE
        self._due = math.inf

    def count_failure(self, reason: str, is_own: bool, most: int) -> bool:
        """Count a failure; return whether another try is due. Failures that are not the table's own never end the
        tries; numbers in reasons are ignored."""
        reason = re.sub(r"\d+", "", reason)
        if not is_own or reason != self._reason:
            self._reason, self._equal = reason, 0
        self._equal += 1
        if is_own and self._equal >= most:
            return False
        self._due = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True

    def postpone(self, seconds: float) -> None:
        self._due = time.monotonic() + seconds

    def take_due(self) -> bool:
        """Return whether the next try is due; a due try counts as begun."""
        is_due = time.monotonic() >= self._due
        if is_due:
            self._due = math.inf
        return is_due
