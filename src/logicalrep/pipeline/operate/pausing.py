"""A running process's check whether its destination is paused."""

from __future__ import annotations

import time
from collections.abc import Callable

from logicalrep.observe.events import WaitReported
from logicalrep.observe.observer import passing
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.requests import read_paused_since, refuse_paused
from logicalrep.postgres.retries import Wait

_CHECK_INTERVAL = 1.0
"""The seconds between two checks whether the destination is paused."""


class PauseCheck:
    """Checks every second whether the destination is paused, and reports a pause every minute."""

    def __init__(self, context: RunContext, describe_retained: Callable[[], str]) -> None:
        self._context = context
        self._describe_retained = describe_retained
        # The start time of the pause, and the wait for its end.
        self._pause: tuple[str, Wait] | None = None
        self._checked_at = -_CHECK_INTERVAL

    def check(self) -> bool:
        """Return whether the destination is paused. Raises PausedError with `once`, as a pause may last long."""
        context, current_time = self._context, time.monotonic()
        if current_time - self._checked_at >= _CHECK_INTERVAL:
            self._checked_at = current_time
            since = context.patience.run(lambda: read_paused_since(context.storage))
            if since is None:
                if self._pause is not None:
                    context.observer.on_event(WaitReported("resumes: the destination is no longer paused"))
                self._pause = None
            elif self._pause is None or self._pause[0] != since:
                self._pause = since, Wait(say=passing(context.observer, WaitReported))
        if self._pause is None:
            return False
        if context.settings.once:
            refuse_paused(context.storage)
        paused_since, wait = self._pause
        wait.say(lambda: f"paused since {paused_since}, until logicalrep resume; {self._describe_retained()}")
        return True
