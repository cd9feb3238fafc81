"""Log lines that people and programs can read: `batch slot=spark mode=peek changes=9 …`."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime

Value = str | int | float | datetime | None


def log_figures(log: logging.Logger, event: str, **figures: Value) -> None:
    """Log an event with its figures, except None, at INFO; the record's attribute `figures` has them for JSON."""
    known_figures = {name: value for name, value in figures.items() if value is not None}
    pairs = " ".join(f"{name}={_text(value)}" for name, value in known_figures.items())
    log.info("%s %s", event, pairs, extra={"event": event, "figures": known_figures})


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line: `time`, `level`, `logger`, `message`, `event` and `figures`.

    Example:
        {"time": "2026-11-26T09:00:00.123Z", "level": "INFO", "logger": "logicalrep.batch", "message": "batch …",
        "event": "batch", "figures": {"slot": "lake", "changes": 9, …}}
    """

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("event", "figures"):
            if name in vars(record):
                line[name] = vars(record)[name]
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=_moment)


def _moment(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def log_to_standard_error(log: logging.Logger, *, as_json: bool = False) -> None:
    """Write a logger's records of level INFO and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(line_formatter(as_json=as_json))
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def line_formatter(*, as_json: bool = False) -> logging.Formatter:
    if as_json:
        return JsonFormatter()
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    return formatter


def timed(text: str) -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}"


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    is_plain = text and not any(character in text for character in ' "=\n')
    return text if is_plain else json.dumps(text, ensure_ascii=False)
