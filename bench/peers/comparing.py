"""The one comparison of all tools: what the server reads from their rows' texts, beside what it has itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from bench.peers.consumer import Row

_LONGEST = 32
"""The most characters of a value that are shown."""
_Values = tuple[str | None, ...]


def compare(connection: Any, table: str, rows: Sequence[Row]) -> str:
    """Return `right`, or `wrong:` and what: the rows' values, as the server shows them, against a plain SELECT.

    A column that rows lack is NULL. A text that the server cannot read as the column's type is compared as it stands.

    Args:
        connection: a connection to the server.
        table: the table.
        rows: the tool's rows in the end, as texts that PostgreSQL reads.
    """
    columns: dict[str, str] = dict(
        connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [table],
        ).fetchall()
    )
    texts = ", ".join(_expression(name, type_) for name, type_ in columns.items())
    truth: list[_Values] = connection.execute(f"SELECT {texts} FROM {table}").fetchall()
    shown_rows = [tuple(_shown(connection, row.get(name), type_) for name, type_ in columns.items()) for row in rows]
    missing, more = Counter(truth) - Counter(shown_rows), Counter(shown_rows) - Counter(truth)
    if not missing and not more:
        return "right"
    return "wrong: " + _difference(list(columns), list(missing.elements()), list(more.elements()))


def _shown(connection: Any, text: str | None, type_: str) -> str | None:
    if text is None:
        return None
    try:
        (shown,) = connection.execute(f"SELECT {_expression(f'%s::text::{type_}', type_)}", [text]).fetchone()
    except psycopg.DataError:
        return text
    return str(shown)


def _expression(value: str, type_: str) -> str:
    # 0.10 and 0.1 are the same number.
    return f"trim_scale({value})::text" if type_.startswith("numeric") else f"{value}::text"


def _difference(columns: Sequence[str], missing: list[_Values], more: list[_Values]) -> str:
    """Return what differs: one value of a row with the same first column, rows too many, or rows that are missing."""
    differences = []
    by_first = {values[0]: values for values in missing}
    paired = [(by_first[values[0]], values) for values in more if values[0] in by_first]
    if paired:
        truth, stored = paired[0]
        name, wanted, got = next(cell for cell in zip(columns, truth, stored, strict=True) if cell[1] != cell[2])
        where = f"`{name}` is {_quoted(got)}, not {_quoted(wanted)}"
        differences.append(where if len(paired) == 1 else f"{where}; {len(paired)} such rows")
    if (count := len(more) - len(paired)) > 0:
        differences.append(f"{count} {'row' if count == 1 else 'rows'} too many")
    if (count := len(missing) - len(paired)) > 0:
        differences.append(f"{count} {'row is' if count == 1 else 'rows are'} missing")
    return "; ".join(differences)


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[:_LONGEST]}…`"


__all__ = ["compare"]
