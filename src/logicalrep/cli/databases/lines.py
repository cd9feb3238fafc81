"""The output of the processes of several databases, with the database's name in each line."""

from __future__ import annotations

import json
import logging
import sys
import threading
from typing import IO

from logicalrep.observe.log import line_formatter, timed
from logicalrep_runtime.visible import visible

_LOGGER = "logicalrep.databases"


class DatabaseLines:
    def __init__(self, log: str | None, stream: IO[str] | None = None) -> None:
        """Set the log's format, `text` or `json`; None for lines for people."""
        self._log = log
        self._stream = sys.stderr if stream is None else stream
        self._lock = threading.Lock()

    def write_line(self, database: str, line: str) -> None:
        if self._log == "json":
            try:
                self._print(json.dumps({"database": database, **json.loads(line)}, ensure_ascii=False))
                return
            except (ValueError, TypeError):
                # The last line, an error, is not JSON.
                self.write_event(database, line)
                return
        self._print(f"{database}: {line}")

    def write_event(self, database: str, text: str) -> None:
        if self._log is None:
            self._print(f"{database}: {timed(visible(text))}")
            return
        is_json = self._log == "json"
        line_text = text if is_json else visible(text)
        record = logging.makeLogRecord({"name": _LOGGER, "levelname": "WARNING", "msg": line_text})
        self.write_line(database, line_formatter(as_json=is_json).format(record))

    def _print(self, line: str) -> None:
        with self._lock:
            print(line, file=self._stream, flush=True)
