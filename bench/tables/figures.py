"""The measured parts of docs/explanation/figures.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.pages import table
from bench.tables.aims import aims_of

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "figures.md"
_AIMS_HEAD = ["aim", "at most", "measured", "outcome"]


def part_text(part: str, figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the tables of a part: its figures, and whether their aims hold."""
    columns = dict.fromkeys(column for figure in figures for column in figure)
    rows = [[_cell(figure.get(column)) for column in columns] for figure in figures]
    outcomes = [
        [f"{figure['measured']}: {aim.figure}", f"{aim.most:,}", _cell(aim.value(figure)), aim.outcome(figure)]
        for figure in figures
        for aim in aims_of(part, figure)
    ]
    tables = [table(list(columns), rows), *([table(_AIMS_HEAD, outcomes)] if outcomes else [])]
    return "\n\n".join(tables)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        total = [f"{value['in all']:,}"] if "in all" in value else []
        parts = [f"{name} {_cell(number)}" for name, number in value.items() if name != "in all"]
        return " of which ".join([*total, ", ".join(parts)]) if len(parts) > 1 else (total or parts)[0]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


__all__ = ["PAGE", "part_text"]
