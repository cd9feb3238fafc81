"""The measured parts of docs/comparison.md: tables between two comments, which the command prints and writes."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from bench.peers import consumer, debezium
from bench.peers.right import Outcome
from bench.peers.server import PortServer

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"


def right_text(outcome: Outcome) -> str:
    """Return the table of what is right in the end."""
    rows = [[case.name, *cells] for case, *cells in zip(outcome.cases, *outcome.cells.values(), strict=True)]
    return table(["case", *outcome.cells], rows)


def setup_text(server: PortServer) -> str:
    """Return the table of what one has to write."""
    properties = debezium.properties(server, "name", Path(), debezium.WITH_OPTIONS)
    java, python = _lines(debezium.PROGRAM), _lines(Path(consumer.__file__))
    programs = (
        f"{java} lines of Java around its engine; {python} lines that make rows of events, in memory; the writer of "
        "tables is not among them"
    )
    rows = [
        ["`logicalrep replicate`", "1 command", "none", "none"],
        ["Debezium", "Maven, javac, 1 command", f"{len(properties)} properties", programs],
    ]
    return table(["tool", "to run it", "configuration", "programs"], rows)


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def setting_text(server: str, engines: Sequence[str], *, with_debezium: bool) -> str:
    """Return the sentence that dates a measurement: versions, processors, and the load before it began."""
    versions = [f"PostgreSQL {server}", f"Python {platform.python_version()}"]
    versions += [f"PySpark {importlib.metadata.version('pyspark')}"] if "spark" in engines else []
    versions += [f"Debezium {debezium.version()}"] if with_debezium else []
    return (
        f"Measured on {date.today().isoformat()} with logicalrep {importlib.metadata.version('logicalrep')}, "
        f"{', '.join(versions)}; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start."
    )


def write_part(name: str, text: str) -> None:
    """Replace a part of the page by a measured part."""
    page = PAGE.read_text("utf-8")
    put, count = re.subn(
        rf"(<!-- measured: {name} -->\n).*?(<!-- end -->\n)",
        lambda match: f"{match[1]}\n{text}\n\n{match[2]}",
        page,
        flags=re.DOTALL,
    )
    if count != 1:
        raise RuntimeError(f"{PAGE} has {count} places for the part {name}")
    PAGE.write_text(put, "utf-8")


__all__ = ["PAGE", "right_text", "setting_text", "setup_text", "table", "write_part"]
