"""The measured parts of docs/comparison.md."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

from bench.pages import setting_text, table
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


def introduction(server: str, engines: Sequence[str], *, with_debezium: bool) -> str:
    """Return the sentence that dates a measurement of some tools."""
    versions = [f"PySpark {importlib.metadata.version('pyspark')}"] if "spark" in engines else []
    versions += [f"Debezium {debezium.version()}"] if with_debezium else []
    return setting_text(server, *versions)


__all__ = ["PAGE", "introduction", "right_text", "setup_text"]
