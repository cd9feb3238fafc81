"""Measured parts of pages: text between two comments, which a command measures, prints and writes."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import textwrap
from collections.abc import Sequence
from datetime import date
from pathlib import Path

_PART = r"(<!-- measured: {} -->\n).*?(<!-- end -->\n)"
_WIDTH = 120


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def setting_text(server: str, *programs: str) -> str:
    """Return the sentence that dates a measurement: versions, processors, and the load before it began.

    `server` is PostgreSQL's version; `programs` are the names and versions of further programs, once or several times.
    """
    logicalrep = f"logicalrep {importlib.metadata.version('logicalrep')}"
    versions = dict.fromkeys([logicalrep, f"PostgreSQL {server}", f"Python {platform.python_version()}", *programs])
    return (
        f"Measured on {date.today().isoformat()} with {', '.join(versions)}; {os.cpu_count()} processors"
        f"{_processor_model()}, load {os.getloadavg()[0]:.1f} at the start."
    )


def _processor_model() -> str:
    file = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", file.read_text(), re.MULTILINE) if file.exists() else None
    return f" ({model[1].removesuffix(' Processor')})" if model else ""


def filled(text: str) -> str:
    """Return a paragraph in lines of a page's width."""
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def parts_of(page: Path) -> list[str]:
    """Return the names of a page's measured parts."""
    return re.findall(r"^<!-- measured: (.+) -->$", page.read_text("utf-8"), re.MULTILINE)


def write_part(page: Path, name: str, text: str) -> None:
    """Replace a part of a page by a measured part.

    Raises:
        ValueError: The page has no place for the part, or several.
    """
    pattern = re.compile(_PART.format(re.escape(name)), re.DOTALL)
    put, count = pattern.subn(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page.read_text("utf-8"))
    if count != 1:
        raise ValueError(f"{page} has {count} places for the part {name}")
    page.write_text(put, "utf-8")


__all__ = ["filled", "parts_of", "setting_text", "table", "write_part"]
