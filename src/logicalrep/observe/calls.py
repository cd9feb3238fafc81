"""The observers that call a command or a URL, for a table that stops, or whose columns change."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from logicalrep.observe.events import RunEnded, RunEvent, SchemaChanged, TableStopped
from logicalrep.observe.observer import Observer
from logicalrep.transactions.logs import logger
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import visible

_CALL_TIMEOUT = 10.0
"""The seconds that a call may take."""

_log = logger("logicalrep.replicate")


class Calls(Observer):
    """Makes one call after another in a thread of its own, so that no table waits for them."""

    option = ""
    """The option that asks for the calls."""

    def __init__(self, to: str, destination: str) -> None:
        """Take a shell's command, or a URL that begins with `http://` or `https://`, and the destination's URI."""
        self._to = to
        self._destination = destination
        self._queue: SimpleQueue[dict[str, str] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="logicalrep-calls", daemon=True)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Make calls within this context, whose end waits a while for the last ones."""
        self._thread.start()
        try:
            yield
        finally:
            self._queue.put(None)
            self._thread.join(2 * _CALL_TIMEOUT)

    def _call(self, event: str, text: str, **details: str) -> None:
        self._queue.put({"event": event, "destination": self._destination, "text": visible(text), **details})

    def _run(self) -> None:
        while (content := self._queue.get()) is not None:
            try:
                self._make_call(json.dumps(content).encode())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                text = visible(str(error))
                _log.warning("the call of %s failed for %s: %s", self.option, content["event"], text)

    def _make_call(self, content: bytes) -> None:
        if self._to.startswith(("http://", "https://")):
            request = urllib.request.Request(self._to, content, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=_CALL_TIMEOUT):
                return
        subprocess.run(
            self._to, shell=True, input=content, timeout=_CALL_TIMEOUT, check=True, stdout=subprocess.DEVNULL
        )


class CallsOnStop(Calls):
    """Calls when a table stops, and when the run ends with an error."""

    option = "--call-on-stop"

    def on_event(self, event: RunEvent) -> None:
        """Call for a table that is stopped, and for an end by an error that nobody requested."""
        match event:
            case TableStopped(table, reason):
                self._call("table_stopped", reason, table=str(table))
            case RunEnded(error, is_requested=False):
                code = error.code if isinstance(error, LogicalRepError) else type(error).__name__
                self._call("ended", str(error), code=code)


class CallsOnSchemaChange(Calls):
    """Calls when a table at the destination has other columns, or another key."""

    option = "--call-on-schema-change"

    def on_event(self, event: RunEvent) -> None:
        """Call for a table whose columns or key changed."""
        if isinstance(event, SchemaChanged):
            self._call("schema_changed", "; ".join(event.changes), table=str(event.table))
