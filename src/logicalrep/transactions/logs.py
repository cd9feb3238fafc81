"""Warnings in the log, each of which appears once."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable

from logicalrep_runtime.visible import visible

SAID: set[str] = set()


class _Visible(logging.Filter):
    """Makes records one line each, whatever names and texts of other programs they contain."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = visible(record.getMessage()), None
        if record.exc_info and record.exc_info[1] is not None and record.exc_text is None:
            lines = "".join(traceback.format_exception(record.exc_info[1])).rstrip().split("\n")
            record.exc_text = "\n".join(map(visible, lines))
        return True


_VISIBLE = _Visible()


def logger(name: str) -> logging.Logger:
    log = logging.getLogger(name)
    log.addFilter(_VISIBLE)
    return log


_log = logger("logicalrep")


def warn(warnings: Iterable[str]) -> None:
    """Log the warnings that this process has not logged before."""
    for warning in warnings:
        if warning not in SAID:
            SAID.add(warning)
            _log.warning("%s", warning)
