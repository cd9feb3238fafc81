"""Observers that call a command or a URL when a table stops or its columns change."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from logicalrep.observe.event_queue import EventQueue
from logicalrep.observe.events import DestinationFailing, RunEnded, RunEvent, SchemaChanged, TableStopped
from logicalrep.observe.observer import Observer
from logicalrep.transactions.logs import logger
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import visible

_CALL_TIMEOUT = 10.0
"""In seconds."""

_log = logger("logicalrep.replicate")


class Calls(Observer):
    """Makes calls one after another in its own thread, so that no table waits for a call."""

    option = ""

    def __init__(self, to: str, destination: str) -> None:
        """`to`: a shell command, which gets the call's JSON on standard input; or an HTTP URL, which gets a POST."""
        self._to = to
        self._destination = destination
        self._queue: EventQueue[dict[str, str]] = EventQueue("logicalrep-calls", self._run)

    def calling(self) -> AbstractContextManager[None]:
        """Make calls within this context; its end waits up to 20 seconds for the last calls."""
        return self._queue.handling()

    def _call(self, event: str, text: str, **details: str) -> None:
        self._queue.put({"event": event, "destination": self._destination, "text": visible(text), **details})

    def _run(self, contents: Iterator[dict[str, str]]) -> None:
        for content in contents:
            try:
                self._make_call(json.dumps(content).encode())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                text = visible(str(error))
                _log.warning("the call of %s for %s failed: %s", self.option, content["event"], text)

    def _make_call(self, content: bytes) -> None:
        if self._to.startswith(("http://", "https://")):
            # Only for calls: it imports much.
            import urllib.request

            request = urllib.request.Request(self._to, content, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=_CALL_TIMEOUT):
                return
        subprocess.run(
            self._to, shell=True, input=content, timeout=_CALL_TIMEOUT, check=True, stdout=subprocess.DEVNULL
        )


class CallsOnStop(Calls):
    """Calls when a table stops, the destination cannot be written, or an error that nobody requested ends the run."""

    option = "--call-on-stop"

    def on_event(self, event: RunEvent) -> None:
        match event:
            case TableStopped(table, reason):
                self._call("table_stopped", reason, table=str(table))
            case DestinationFailing(text, is_first=True):
                self._call("destination_failing", text)
            case RunEnded(error, is_requested=False):
                code = error.code if isinstance(error, LogicalRepError) else type(error).__name__
                self._call("ended", str(error), code=code)


@contextmanager
def calling_on_error(to: str | None, destination: str) -> Iterator[None]:
    """Call as CallsOnStop does if this context, before a run, ends with an error; `to` is None for no call."""
    try:
        yield
    except Exception as error:
        if to is not None:
            calls = CallsOnStop(to, destination)
            with calls.calling():
                calls.on_event(RunEnded(error, is_requested=False))
        raise


class CallsOnSchemaChange(Calls):
    """Calls when the columns or the key of a stored table change."""

    option = "--call-on-schema-change"

    def on_event(self, event: RunEvent) -> None:
        if isinstance(event, SchemaChanged):
            self._call("schema_changed", "; ".join(event.changes), table=str(event.table))
