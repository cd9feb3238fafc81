"""The output of `logicalrep changes --format table`: changes below a heading for each transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from logicalrep.cli.terminal import TerminalStyle
from logicalrep.transactions.change_feed import ChangeRow
from logicalrep_runtime.json_values import JsonValue
from logicalrep_runtime.visible import visible

_VALUE_WIDTH = 40


def table_lines(rows: Iterable[ChangeRow], style: TerminalStyle) -> Iterator[str]:
    last: tuple[object, object] | None = None
    for row in rows:
        transaction = (row["commit_lsn"], row["xid"])
        if transaction != last:
            last = transaction
            yield style.bold(_heading(row))
        ordinal = "" if row["ordinal"] is None else row["ordinal"]
        name = f"{row['schema']}.{row['table']}" if row["table"] is not None else ""
        yield visible(f"{ordinal:>6}  {row['op']:<8}  {name}{'  ' if name else ''}{_sides(row)}".rstrip())


def _heading(row: ChangeRow) -> str:
    if row["xid"] is None:
        return f"outside of transactions, at {row['lsn']}"
    parts = [f"transaction {row['xid']}"]
    if row["commit_lsn"] is not None:
        parts.append(f"committed at {row['commit_lsn']}, {row['commit_timestamp']}")
    if row["gid"] is not None:
        parts.append(f"prepared as {row['gid']!r}")
    if row["origin"] is not None:
        parts.append(f"from origin {row['origin']!r}")
    return ", ".join(parts)


def _sides(row: ChangeRow) -> str:
    old_row, new_row = row["before"], row["after"]
    unchanged = [f"{name} unchanged" for name in row["unchanged"]]
    new = "" if new_row is None else ", ".join([*_values(new_row), *unchanged])
    if old_row is None:
        return new
    old = ", ".join(_values(old_row))
    return old if new_row is None else f"{old} -> {new}"


def _values(side: dict[str, JsonValue]) -> list[str]:
    return [f"{name}={_short(value)}" for name, value in side.items()]


def _short(value: JsonValue) -> str:
    text = "NULL" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 3]}..."
