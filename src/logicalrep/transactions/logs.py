"""Warnings in the log, which come once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

_log = logging.getLogger("logicalrep")
_said: set[str] = set()


def warn(warnings: Iterable[str]) -> None:
    """Log warnings; what this process has said it does not say again, however many readers find it."""
    for warning in warnings:
        if warning not in _said:
            _said.add(warning)
            _log.warning("%s", warning)
