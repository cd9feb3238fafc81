"""A reader of the plugin test_decoding's output: an independent account of the same log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.protocol.captured import rows

UNCHANGED = object()
"""The value of a column that was stored out of line and not logged."""

_IDENTIFIER = r'(?:"(?:[^"]|"")*"|[^\s".:,\[\]]+)'
_TABLE = re.compile(rf"({_IDENTIFIER})\.({_IDENTIFIER})")
_COLUMN = re.compile(rf'({_IDENTIFIER})\[((?:"(?:[^"]|"")*"|\[\]|[^"\[\]])*)\]:', re.DOTALL)
_VALUE = re.compile(r"(B?)'((?:[^']|'')*)'|(\S+)", re.DOTALL)
_MESSAGE = re.compile(r"message: transactional: (\d) prefix: (.*), sz: (\d+) content:(.*)", re.DOTALL)
_END = re.compile(r"(?:COMMIT (\d+)|PREPARE TRANSACTION (E?'.*'), txid (\d+)) \(at (.*)\)", re.DOTALL)
_DECISION = re.compile(r"(COMMIT|ROLLBACK) PREPARED (E?'.*'), txid (\d+) \(at (.*)\)", re.DOTALL)

Row = dict[str, Any]
"""Text by column name, None for NULL, UNCHANGED."""


class PluginChange(NamedTuple):
    """One change; a TRUNCATE is one for each table."""

    op: str
    lsn: str
    schema: str = ""
    table: str = ""
    old: Row | None = None
    new: Row | None = None
    message: tuple[str, str] | None = None
    """The prefix and the content of a message; bytes that are not text are surrogates."""


@dataclass
class PluginTransaction:
    """A transaction from BEGIN to COMMIT or PREPARE TRANSACTION."""

    xid: int
    timestamp: datetime | None = None
    gid: str | None = None
    changes: list[PluginChange] = field(default_factory=list)


@dataclass(frozen=True)
class PluginDecision:
    """COMMIT PREPARED or ROLLBACK PREPARED."""

    committed: bool
    gid: str
    xid: int
    timestamp: datetime


PluginEvent = PluginTransaction | PluginDecision | PluginChange
"""A PluginChange between transactions is a message."""


def plugin_events(path: Path) -> list[PluginEvent]:
    """Return all events of a file, in order."""
    lines = rows(path)
    next(lines)
    return list(events_of(lines))


def events_of(lines: Iterable[dict[str, Any]]) -> Iterator[PluginEvent]:
    """Yield the events of lines with an `lsn` and the text, or its bytes as `hex`; commits have timestamps."""
    transaction: PluginTransaction | None = None
    for line in lines:
        text = line["text"] if "text" in line else bytes.fromhex(line["hex"]).decode("utf-8", "surrogateescape")
        if text.startswith("BEGIN "):
            assert transaction is None
            transaction = PluginTransaction(int(text[6:]))
        elif text.startswith("table "):
            assert transaction is not None
            transaction.changes += _table_changes(text, line["lsn"])
        elif text.startswith("message: "):
            transactional, message = _message(text, line["lsn"])
            if transactional:
                assert transaction is not None
                transaction.changes.append(message)
            else:
                yield message
        elif match := _DECISION.fullmatch(text):
            yield PluginDecision(match[1] == "COMMIT", _literal(match[2]), int(match[3]), _time(match[4]))
        elif match := _END.fullmatch(text):
            assert transaction is not None
            assert transaction.xid == int(match[1] or match[3])
            transaction.timestamp = _time(match[4])
            transaction.gid = None if match[2] is None else _literal(match[2])
            yield transaction
            transaction = None
        else:
            raise AssertionError(f"unknown line: {text!r}")
    assert transaction is None


def _message(text: str, lsn: str) -> tuple[bool, PluginChange]:
    match = _MESSAGE.fullmatch(text)
    assert match is not None, text
    # The prefix may contain the text that ends it; the size tells.
    return match[1] == "1", PluginChange("message", lsn, message=(match[2], match[4]))


def _table_changes(text: str, lsn: str) -> list[PluginChange]:
    offset = len("table ")
    tables = []
    while True:
        match = _TABLE.match(text, offset)
        assert match is not None, text[:200]
        tables.append((_name(match[1]), _name(match[2])))
        offset = match.end()
        if not text.startswith(", ", offset):
            break
        offset += 2
    assert text.startswith(": ", offset), text[:200]
    operation, _, rest = text[offset + 2 :].partition(":")
    if operation == "TRUNCATE":
        return [PluginChange("truncate", lsn, schema, table) for schema, table in tables]
    [(schema, table)] = tables
    old = new = None
    if rest == " (no-tuple-data)":
        pass
    elif operation == "INSERT":
        new, _ = _columns(rest)
    elif operation == "DELETE":
        old, _ = _columns(rest)
    else:
        assert operation == "UPDATE", operation
        if rest.startswith(" old-key:"):
            old, rest = _columns(rest[len(" old-key:") :])
            assert rest.startswith(" new-tuple:"), rest[:200]
            rest = rest[len(" new-tuple:") :]
        new, _ = _columns(rest)
    return [PluginChange(operation.lower(), lsn, schema, table, old, new)]


def _columns(text: str) -> tuple[Row, str]:
    """Return the columns of a row, and the text behind them."""
    row: Row = {}
    offset = 0
    while offset < len(text) and not text.startswith(" new-tuple:", offset):
        assert text[offset] == " ", text[offset : offset + 200]
        match = _COLUMN.match(text, offset + 1)
        assert match is not None, text[offset : offset + 200]
        value = _VALUE.match(text, match.end())
        assert value is not None, text[offset : offset + 200]
        assert _name(match[1]) not in row
        row[_name(match[1])] = _value(value, match[2])
        offset = value.end()
    return row, text[offset:]


def _value(match: re.Match[str], type_name: str) -> Any:
    if match[3] is None:
        return _unquoted(match[2], "'")
    if match[3] == "null":
        return None
    if match[3] == "unchanged-toast-datum":
        return UNCHANGED
    if type_name == "boolean":
        return match[3][0]
    return match[3]


def _name(text: str) -> str:
    return _unquoted(text[1:-1], '"') if text.startswith('"') else text


def _literal(text: str) -> str:
    """Return a string constant, with backslashes doubled in the form E'...'."""
    value = _unquoted(text[text.index("'") + 1 : -1], "'")
    return value.replace("\\\\", "\\") if text.startswith("E") else value


def _unquoted(text: str, quote: str) -> str:
    return text.replace(quote * 2, quote)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
