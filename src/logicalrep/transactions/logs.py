"""Warnings in the log, each of which appears once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

_log = logging.getLogger("logicalrep")
_said: set[str] = set()


def warn(warnings: Iterable[str]) -> None:
    """Log the warnings that this process has not logged before."""
    for warning in warnings:
        if warning not in _said:
            _said.add(warning)
            _log.warning("%s", warning)
