"""The tries of a table's load: each pauses for longer than the one before, and equal failures have an end."""

from __future__ import annotations

import math
import re
import time

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0
"""The seconds before the second try, and before later ones."""


class Tries:
    """The failures of one table's load one after another."""

    def __init__(self) -> None:
        """Begin without a failure."""
        self._reason = ""
        self._equal = 0
        self._pause = _FIRST_PAUSE
        self._due = math.inf

    def count_failure(self, reason: str, is_own: bool, most: int) -> bool:
        """Note a failure; return whether there is to be another try, which is due after a pause.

        Args:
            reason: the reason in words. Numbers in it, as of a process, do not make it another one.
            is_own: whether the table itself is the reason; what lies elsewhere never ends the tries.
            most: the number of equal failures that ends the tries.
        """
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
        """Let the next try be due after some seconds."""
        self._due = time.monotonic() + seconds

    def take_due(self) -> bool:
        """Return whether the next try is due; it counts as begun then."""
        is_due = time.monotonic() >= self._due
        if is_due:
            self._due = math.inf
        return is_due
