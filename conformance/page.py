"""The measured parts of docs/conformance.md: tables between two comments, which the command prints and writes."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.pages import setting_text, table
from conformance.cases import Case
from conformance.tool import ROOT
from conformance.tools import debezium, debezium_consumer, debezium_engine
from conformance.workloads import Outcome
from logicalrep.postgres.local_server import find_installation

PAGE = ROOT / "docs" / "conformance.md"
MAJOR = 18
"""The major version of the kit's servers."""
_MOST_EXAMPLES = 3
"""The different verdicts of each tool that are shown."""


def cases_text(cases: Sequence[Case], outcomes: Mapping[str, Outcome]) -> str:
    """Return the table of cases; `outcomes` are by the tools' titles."""
    columns = [[str(outcome.verdicts[f"public.{case.table}"]) for case in cases] for outcome in outcomes.values()]
    rows = [[case.name, *cells] for case, *cells in zip(cases, *columns, strict=True)]
    return table(["case", *outcomes], rows)


def outcomes_text(outcomes: Mapping[str, Outcome], unit: str) -> str:
    """Return the table of a workload with seeds, and the first verdicts that are not right."""
    head = [
        "tool", unit, "kills", "exits", "tables compared", "rows compared", "right", "wrong", "stopped", "failed"
    ]  # fmt: skip
    rows, examples = [], []
    for title, outcome in outcomes.items():
        verdicts = outcome.verdicts
        counts = Counter(verdict.result for verdict in verdicts.values())
        figures = [outcome.statements, outcome.kills, outcome.exits, len(verdicts)]
        figures += [sum(verdict.rows for verdict in verdicts.values())]
        figures += [counts[result] for result in ("right", "wrong", "stopped", "failed")]
        rows.append([title, *(f"{figure:,}" for figure in figures)])
        shown = {str(verdict): name for name, verdict in reversed(verdicts.items()) if verdict.result != "right"}
        if shown:
            verbs = {"wrong": "is ", "stopped": "is ", "failed": ""}
            texts = [
                f"`{name}` {verbs[verdicts[name].result]}{text}" for text, name in [*shown.items()][-_MOST_EXAMPLES:]
            ]
            examples.append(f"- {title}: {'; '.join(reversed(texts))}.")
    return "\n\n".join(filter(None, [table(head, rows), "\n".join(examples)]))


def setup_text() -> str:
    """Return the table of what users of a tool have to write."""
    properties = debezium_engine.properties(
        "host=127.0.0.1 port=5432 user=postgres dbname=postgres", "name", "p", Path(), debezium_engine.WITH_OPTIONS
    )
    python = sum(_lines(Path(str(module.__file__))) for module in (debezium, debezium_consumer))
    programs = (
        f"{_lines(debezium_engine.PROGRAM)} lines of Java around its engine; {python} lines that make rows of events, "
        "in memory; the writer of tables is not among them"
    )
    rows = [
        ["`logicalrep replicate`", "1 command", "none", "none"],
        ["Debezium", "Maven, javac, 1 command", f"{len(properties)} properties", programs],
    ]
    return table(["tool", "to run it", "configuration", "programs"], rows)


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def introduction(tools: Sequence[str]) -> str:
    """Return the sentence that dates a measurement of tools; each tool names its programs, with commas between them."""
    return setting_text(_server_version(), *(program for tool in tools for program in tool.split(", ")))


def _server_version() -> str:
    program = find_installation(MAJOR).bin / "postgres"
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


__all__ = ["MAJOR", "PAGE", "cases_text", "introduction", "outcomes_text", "setup_text"]
