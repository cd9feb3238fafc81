"""The rows that `logicalrep.read` has of a table, as texts that PostgreSQL reads."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import logicalrep
from bench.peers.consumer import Row, array_text


def rows_of(lake: Path, table: str) -> list[Row]:
    """Return the rows that `logicalrep.read` has; a value that its type cannot hold is in a second column."""
    rows = logicalrep.read(str(lake), f"public.{table}").arrow().to_pylist()
    texts = [{name: _text(value) for name, value in row.items()} for row in rows]
    return [{name: row.get(f"{name}_text") if text is None else text for name, text in row.items()} for row in texts]


def _text(value: Any) -> str | None:
    """Return a value of Arrow's as PostgreSQL reads it."""
    match value:
        case None:
            return None
        case bytes():
            return "\\x" + value.hex()
        case list():
            return array_text(map(_text, value))
        case Decimal():
            return f"{value:f}"
    return str(value)


__all__ = ["rows_of"]
