"""The consumer of Debezium's events that anybody writes first: it makes rows of them.

It inserts or replaces a row by the event's key, and removes the row of a delete by it. Where an event has no key, it
adds the row of an insert, and replaces or removes one row that equals the event's `before`. A truncate empties the
table. Values are decoded by the schema that comes with each event, as the documentation of its types says.

An informed consumer has read the rest of the documentation too. It keeps a value in whose place the placeholder comes.
It takes a row whose key changed from its old key, by the header that the event has. It finds rows by the columns of the
last key, and gives them the columns of the event's schema, with the defaults that the schema has. It knows the two
timestamps that stand for infinities. It leaves out events that come again after a restart, and empties the tables where
a snapshot begins anew.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from conformance.tool import Row
from conformance.tools.texts import array_text

PLACEHOLDER = "__debezium_unavailable_value"
_OLD_KEY, _NEW_KEY = "__debezium.oldkey", "__debezium.newkey"
"""The headers of the insert and of the delete that a change of a key becomes."""
_INFINITIES = {9223372036825200000: "infinity", -9223372036832400000: "-infinity"}
"""The timestamps that stand for infinities."""
RESTART = "restart"
"""The line where the tool was started again."""


def fold(lines: Iterable[str], *, is_informed: bool) -> dict[str, list[Row]]:
    """Return the rows of each table in the end, by `schema.table`.

    Args:
        lines: the events: a key, a value and headers, all JSON, with tabs between them; or RESTART.
        is_informed: whether the consumer knows the rules of Debezium's documentation.
    """
    tables: dict[str, dict[object, Row]] = {}
    columns: dict[str, list[str]] = {}
    keys: dict[str, list[str]] = {}
    repeats = _Repeats()
    for number, line in enumerate(lines):
        if line == RESTART:
            repeats.restart()
            continue
        key_text, value_text, header_text = line.split("\t")
        if value_text == "null":
            continue
        value = json.loads(value_text)
        event, fields = value["payload"], {field["field"]: field for field in value["schema"]["fields"]}
        source = event["source"]
        if is_informed:
            if source.get("snapshot") == "first":
                tables.clear()
            elif repeats.has(source):
                continue
        table = f"{source['schema']}.{source['table']}"
        rows = tables.setdefault(table, {})
        if event["op"] == "t":
            rows.clear()
            continue
        old_row, new_row = (_row(event[side], fields[side], is_informed) for side in ("before", "after"))
        types = {field["field"]: field for field in fields["after"]["fields"]}
        key: object
        if key_text == "null":
            # Without a key a row's place is its own; that of an equal row is found by its old values.
            key = next((place for place, row in rows.items() if row == old_row), None) if old_row else number
        else:
            payload = json.loads(key_text)["payload"]
            key = _key(payload, types)
            if is_informed and keys.setdefault(table, [*payload]) != [*payload]:
                keys[table] = [*payload]
                _move_rows(rows, keys[table])
        moved_from = json.loads(header_text).get(_OLD_KEY)
        old = rows.get(key)
        if new_row is None:
            if not (is_informed and _NEW_KEY in json.loads(header_text)):
                rows.pop(key, None)
            continue
        if is_informed:
            if moved_from is not None:
                old = rows.pop(_key(moved_from["payload"], types), None)
            old = old or old_row or {}
            new_row = {name: old.get(name) if text == PLACEHOLDER else text for name, text in new_row.items()}
            if columns.get(table) != [*new_row]:
                columns[table] = [*new_row]
                _change_columns(rows.values(), types.values())
        rows[key] = new_row
    return {name: list(rows.values()) for name, rows in tables.items()}


class _Repeats:
    """Recognizes events that Debezium sends again after a restart, by the positions that their sources have.

    Events come in the order of their transactions' commits, and of their LSNs in a transaction. Several events may have
    one position: Debezium sends such events again in the same order.
    """

    def __init__(self) -> None:
        self._last = (0, 0)
        self._count = self._resent = 0
        """The events at the last position, and how many of them were sent since the restart."""

    def restart(self) -> None:
        self._resent = 0

    def has(self, source: dict[str, Any]) -> bool:
        """Return whether an event came before the restart too."""
        if source.get("sequence") is None or source.get("snapshot") not in ("false", None):
            return False
        commit_lsn, lsn = json.loads(source["sequence"])
        position = int(commit_lsn or 0), int(lsn or 0)
        if position > self._last:
            self._last, self._count, self._resent = position, 1, 1
            return False
        if position < self._last:
            return True
        self._resent += 1
        is_repeat = self._resent <= self._count
        self._count = max(self._count, self._resent)
        return is_repeat


def _key(payload: dict[str, Any], types: dict[str, Any]) -> object:
    return tuple((name, _text(value, types[name], True)) for name, value in payload.items())


def _move_rows(rows: dict[object, Row], names: list[str]) -> None:
    """Put rows where the columns of another key say."""
    moved = [*rows.values()]
    rows.clear()
    rows.update({tuple((name, row.get(name)) for name in names): row for row in moved})


def _change_columns(rows: Iterable[Row], fields: Iterable[dict[str, Any]]) -> None:
    """Give rows the columns of an event's schema alone: with its defaults where they lack a column."""
    defaults = {field["field"]: _text(field.get("default"), field, True) for field in fields}
    for row in rows:
        columns = {name: row.get(name, default) for name, default in defaults.items()}
        row.clear()
        row.update(columns)


def _row(values: dict[str, Any] | None, schema: dict[str, Any], is_informed: bool) -> Row | None:
    if values is None:
        return None
    return {field["field"]: _text(values[field["field"]], field, is_informed) for field in schema["fields"]}


def _text(value: Any, schema: dict[str, Any], is_informed: bool) -> str | None:
    """Return a value as PostgreSQL reads it, by its schema; as it stands if that does not fit."""
    if value is None:
        return None
    if is_informed and schema.get("name") == "io.debezium.time.MicroTimestamp" and value in _INFINITIES:
        return _INFINITIES[value]
    try:
        match schema.get("name"):
            case "io.debezium.time.Date":
                return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
            case "io.debezium.time.MicroTime":
                return _time(value)
            case "io.debezium.time.MicroTimestamp":
                return (datetime(1970, 1, 1) + timedelta(microseconds=value)).isoformat()
            case "io.debezium.time.MicroDuration":
                return f"{value} microseconds"
            case "org.apache.kafka.connect.data.Decimal":
                return str(_decimal(value, int(schema["parameters"]["scale"])))
            case "io.debezium.data.VariableScaleDecimal":
                return str(_decimal(value["value"], value["scale"]))
    except OverflowError:
        return str(value)
    match schema["type"]:
        case "bytes":
            return "\\x" + base64.b64decode(value).hex()
        case "array":
            return array_text([_text(element, schema["items"], is_informed) for element in value])
        case "boolean":
            return str(value).lower()
    return str(value)


def _time(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"


def _decimal(value: str, scale: int) -> Decimal:
    unscaled = int.from_bytes(base64.b64decode(value), "big", signed=True)
    # Arithmetic would round to 28 digits.
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


__all__ = ["PLACEHOLDER", "RESTART", "fold"]
