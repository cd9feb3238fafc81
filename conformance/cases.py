"""The cases of cases.sql."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "cases.sql"
_CASE = re.compile(r"^-- case: ([^\n]*) \((\w+)\)\n(.*?)^-- then\n(.*?)(?=^-- case: |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Case:
    """One case, about one table."""

    name: str
    table: str
    setup: tuple[str, ...]
    """The statements that run before any tool has started."""
    changes: tuple[str, ...]
    """The statements that run while the tools follow."""


def read_cases() -> list[Case]:
    """Return the cases of the file, in its order."""
    matches = _CASE.findall(FILE.read_text("utf-8"))
    return [Case(name, table, _statements(setup), _statements(changes)) for name, table, setup, changes in matches]


def _statements(lines: str) -> tuple[str, ...]:
    return tuple(line for line in lines.splitlines() if line)


__all__ = ["FILE", "Case", "read_cases"]
