"""The lines that the processes of several databases write, each with the name of its database."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from typing import IO

from logicalrep_runtime.visible import visible

_LOGGER = "logicalrep.databases"


class DatabaseLines:
    """Writes whole lines to standard error, whichever process they come from."""

    def __init__(self, log: str | None, stream: IO[str] | None = None) -> None:
        """Take the form of the log, `text` or `json`; None for lines for people."""
        self._log = log
        self._stream = sys.stderr if stream is None else stream
        self._lock = threading.Lock()

    def pass_on(self, database: str, line: str) -> None:
        """Write what a database's process has written."""
        if self._log == "json":
            try:
                self._print(json.dumps({"database": database, **json.loads(line)}, ensure_ascii=False))
                return
            except (ValueError, TypeError):
                # The error that ends a command is a line without JSON.
                self.tell(database, line)
                return
        self._print(f"{database}: {line}")

    def tell(self, database: str, text: str) -> None:
        """Write what became of a database's process."""
        now = datetime.now(UTC)
        seconds, precise = f"{now:%Y-%m-%dT%H:%M:%S}Z", now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._log == "json":
            line = {"database": database, "time": precise, "level": "WARNING", "logger": _LOGGER, "message": text}
            self._print(json.dumps(line, ensure_ascii=False))
        elif self._log == "text":
            self._print(f"{database}: {precise} WARNING {_LOGGER}: {visible(text)}")
        else:
            self._print(f"{database}: {seconds} {visible(text)}")

    def _print(self, line: str) -> None:
        with self._lock:
            print(line, file=self._stream, flush=True)
