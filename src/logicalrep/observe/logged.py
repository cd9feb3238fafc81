"""The observer that writes the log of `logicalrep replicate`."""

from __future__ import annotations

import logging

from logicalrep.observe.events import BatchApplied, RunEnded, RunEvent, RunPrepared
from logicalrep.observe.log import log_figures
from logicalrep.observe.observer import Observer
from logicalrep.transactions.logs import logger

_batches = logger("logicalrep.batch")
_log = logger("logicalrep.replicate")


class LogObserver(Observer):
    """Logs progress at INFO, warnings and waits at WARNING, stopped tables and errors at ERROR."""

    def __init__(self) -> None:
        # Records before RunPrepared have no slot.
        self._slot: str | None = None

    def on_event(self, event: RunEvent) -> None:
        match event:
            case RunPrepared(slot):
                self._slot = slot
            case RunEnded(error, is_requested):
                _log.log(logging.WARNING if is_requested else logging.ERROR, "%s", error)
        if (record := event.record()) is not None:
            name, figures = record
            log_figures(_batches if isinstance(event, BatchApplied) else _log, name, slot=self._slot, **figures)
        elif (line := event.line()) is not None:
            _log.log(event.level, "%s", line)
