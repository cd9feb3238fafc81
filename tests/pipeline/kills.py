"""Kills of a run at its writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from logicalrep.pipeline.storage.storage import Storage


class Killed(BaseException):
    """The end of a process."""


class Kills:
    """Ends a run at one of its writes: from then on none of its threads writes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._lock = threading.Lock()
        self._remaining = 0
        self.before_commit: Callable[[], None] = lambda: None
        for name in ("write", "create", "copy", "delete"):
            patch.setattr(Storage, name, self._counted(name, getattr(Storage, name)))

    def at(self, write: int) -> None:
        """Let the next run end at its write of this number, before it or, for an even number, after it."""
        self._remaining, self._is_after = write, write % 2 == 0

    def _counted(self, name: str, action: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*what: Any) -> Any:
            if name == "create":
                self.before_commit()
            with self._lock:
                self._remaining -= 1
                remaining = self._remaining
            if remaining > 0:
                return action(*what)
            if remaining == 0 and self._is_after:
                action(*what)
            raise Killed

        return counted
