"""The output of `logicalrep decode --summary`: messages by type, transactions, tables and a few rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from logicalrep.captures.capture import CaptureSession
from logicalrep.cli.message_json import message_json, relation_name
from logicalrep.cli.terminal import TerminalStyle
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import AnyMessage, Delete, Insert, Truncate, Update
from logicalrep_runtime.scalars import Lsn, TimestampTz
from logicalrep_runtime.visible import visible

_ROWS_SHOWN = 5
_ROW_WIDTH = 100
_OPERATIONS = ("Insert", "Update", "Delete", "Truncate")


class Summary:
    def __init__(self, session: CaptureSession) -> None:
        self._session = session
        self._by_tag: Counter[str] = Counter()
        self._bytes = 0
        self._operations: Counter[tuple[str, str]] = Counter()
        self._first_time: TimestampTz | None = None
        self._last_time: TimestampTz | None = None
        self._rows: list[dict[str, object]] = []
        self._kinds_shown: Counter[str] = Counter()

    def add(self, lsn: Lsn, data: bytes, message: AnyMessage, decoder: Decoder) -> None:
        """Count a message that `decoder` has just decoded."""
        self._by_tag[message.tag] += 1
        self._bytes += len(data)
        commit_time = getattr(message, "commit_timestamp", None)
        if commit_time is not None:
            self._first_time = commit_time if self._first_time is None else min(self._first_time, commit_time)
            self._last_time = commit_time if self._last_time is None else max(self._last_time, commit_time)
        if isinstance(message, Truncate):
            for oid in message.relation_ids:
                self._operations[relation_name(decoder.relations[oid]), "Truncate"] += 1
        elif isinstance(message, Insert | Update | Delete):
            kind = type(message).__name__
            self._operations[relation_name(decoder.relations[message.relation_id]), kind] += 1
            self._kinds_shown[kind] += 1
            if self._kinds_shown[kind] <= 2 and len(self._rows) < _ROWS_SHOWN:
                self._rows.append(message_json(lsn, message, decoder))

    def lines(self, name: str, style: TerminalStyle) -> Iterator[str]:
        yield style.bold(name)
        yield from self._origin()
        total = self._by_tag.total()
        yield f"{total:,} messages, {self._bytes:,} bytes"
        yield ""
        yield style.bold("Messages")
        for layout in LOGICALREP.messages:
            if count := self._by_tag[layout.tag]:
                yield f"  {layout.tag}  {layout.name:<18} {count:>9,}"
        yield ""
        yield style.bold("Transactions")
        yield from self._transactions()
        yield ""
        yield style.bold("Tables")
        tables = sorted({table for table, _ in self._operations})
        width = max([len(table) for table in tables] + [5])
        yield style.dim("  " + " ".ljust(width) + "".join(f"{operation:>10}" for operation in _OPERATIONS))
        for table in tables:
            counts = "".join(f"{self._operations[table, operation] or '':>10}" for operation in _OPERATIONS)
            yield visible(f"  {table:<{width}}{counts}")
        if self._rows:
            yield ""
            yield style.bold("First rows")
            for row in self._rows:
                yield "  " + _row_line(row)

    def _origin(self) -> Iterator[str]:
        header = self._session.header
        parts = [f"PostgreSQL {header['server_version']}"] if "server_version" in header else []
        parts.append(f"protocol version {self._session.protocol_version}")
        if self._session.parallel:
            parts.append("streaming = parallel")
        if "transport" in header:
            parts.append(f"read by {header['transport']}")
        yield visible(", ".join(parts))

    def _transactions(self) -> Iterator[str]:
        count = self._by_tag
        committed = count["C"] + count["c"] + count["K"]
        ways = f"{count['C']:,} whole, {count['c']:,} streamed, {count['K']:,} prepared before"
        yield f"  committed: {committed:,} ({ways})"
        if count["P"] or count["p"]:
            yield f"  prepared: {count['P'] + count['p']:,} (rolled back: {count['r']:,})"
        if count["A"]:
            yield f"  aborts of streamed transactions and subtransactions: {count['A']:,}"
        if self._first_time is not None:
            yield f"  from {self._first_time} to {self._last_time}"


def _row_line(row: dict[str, object]) -> str:
    sides = [f"{side} {json.dumps(row[side], ensure_ascii=False)}" for side in ("old", "new") if side in row]
    line = visible(f"{str(row['message']).lower()} {row.get('relation', row['relation_id'])}: {', '.join(sides)}")
    return line if len(line) <= _ROW_WIDTH else f"{line[: _ROW_WIDTH - 3]}..."
