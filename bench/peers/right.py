"""The cases of the statements through each tool, and the rows in the end compared with the server's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers import debezium
from bench.peers.cases import Case, read_cases
from bench.peers.comparing import compare
from bench.peers.consumer import fold
from bench.peers.lake import rows_of
from bench.peers.server import PortServer
from bench.tables.setting import Setting

_LONGEST_WAIT = 180.0
_NAMES = {"default": "Debezium as it comes", "options": "Debezium, its options, an informed consumer"}
_UNREPRESENTABLE = "--unrepresentable", "text"
_END = "the_end"
"""A table whose row is the last of the statements, so that a tool that has it has all."""


@dataclass(frozen=True)
class Outcome:
    """The rows that each tool made of each case, compared with the server's."""

    cases: list[Case]
    cells: dict[str, list[str]]
    """The cells of each tool, in the order of the cases."""


def measure(setting: Setting, engines: Sequence[str], *, with_debezium: bool) -> Outcome:
    """Run the cases through `replicate` on each engine, and through Debezium by default and with its options."""
    cases = read_cases()
    cells: dict[str, list[str]] = {}
    server, connection, folder = setting.server, setting.connection, setting.folder
    with ExitStack() as stack:
        for statement in [f"CREATE TABLE {_END} (id int PRIMARY KEY)", "CREATE PUBLICATION peers FOR ALL TABLES"]:
            connection.execute(statement)
        for statement in (statement for case in cases for statement in case.setup):
            connection.execute(statement)
        for engine in engines:
            setting.once(folder / engine, "--engine", engine, *_UNREPRESENTABLE)
        kinds: dict[str, dict[str, str]] = {"default": {}, "options": debezium.WITH_OPTIONS} if with_debezium else {}
        for kind, more in kinds.items():
            stack.enter_context(_following(server, folder, kind, more))
        for statement in (statement for case in cases for statement in case.changes):
            connection.execute(statement)
        connection.execute(f"INSERT INTO {_END} VALUES (1)")
        for engine in engines:
            setting.once(folder / engine, "--engine", engine, *_UNREPRESENTABLE)
            cells[f"`replicate`, {engine}"] = [
                compare(connection, case.table, rows_of(folder / engine, case.table)) for case in cases
            ]
        for kind in kinds:
            lines = _wait(folder / f"{kind}.events", f'"table":"{_END}"')
            rows = fold(lines, is_informed=kind == "options")
            cells[_NAMES[kind]] = [compare(connection, case.table, rows.get(case.table, [])) for case in cases]
    return Outcome(cases, cells)


@contextmanager
def _following(server: PortServer, folder: Path, kind: str, more: Mapping[str, str]) -> Iterator[None]:
    """Let Debezium follow while the context lasts; it has all rows at first."""
    out = folder / f"{kind}.events"
    with debezium.events(server, f"debezium_{kind}", folder, more, out=out):
        _wait(out, '"snapshot":"last"')
        yield


def _wait(out: Path, text: str) -> list[str]:
    """Wait until a file of events has some text; return its lines."""
    deadline = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < deadline:
        if out.is_file() and text in (content := out.read_text()):
            return content[: content.rindex("\n") + 1].splitlines()
        time.sleep(0.2)
    raise RuntimeError(f"{out} has no {text} after {_LONGEST_WAIT:.0f} seconds: see {out.parent}")


__all__ = ["Outcome", "measure"]
