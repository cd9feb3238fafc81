"""Run tools through the kit: `python -m conformance [PART …] [--only TOOLS] [--tool NAME=COMMAND] [--write]`.

The parts, all of them by default:

- cases: the cases of cases.sql, and whether the rows in the end are the rows of a plain SELECT.
- schema: random schema changes, while tools follow, are stopped and are killed.
- types: the same with changes of enums, domains, ranges and composite types.
- kills: random transactions, while tools are killed again and again.
- cost: a first load and a backlog, with the processor seconds and the most memory of all of a tool's processes.
- visible: the seconds from a commit until its rows are visible, at 200 changes a second.
- setup: what users of a tool have to write.

It prints tables in Markdown; with --write it puts them into docs/conformance.md too. Only logicalrep and Debezium have
the parts cost, visible and setup. Debezium needs Maven and Java; where they are missing, a sentence says so.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.pages import table, write_part
from bench.tables.setting import Setting
from bench.writer import connect_writer
from conformance import page
from conformance.cases import read_cases
from conformance.costs import cost, visible
from conformance.costs.workload import make_tables
from conformance.histories.generating import SUBJECTS, History, history
from conformance.histories.subjects import Subject
from conformance.histories.subjects_types import Types
from conformance.run import PUBLICATION, Run
from conformance.server import PortServer
from conformance.tool import ROOT, TOOLS, NotAvailableError, Tool
from conformance.workloads import Outcome, play_cases, play_histories, play_kills
from logicalrep.postgres.local_server import find_installation

_MANY = 1_000_000
"""The orders from which on a start hardly counts."""
_BUILD = ROOT / "build" / "conformance"


@dataclass(frozen=True)
class Kit:
    """The tools that can run here, and the options of the command."""

    tools: Sequence[Tool]
    seeds: range
    histories: int
    phases: int
    kills: int
    rows: int
    seconds: float

    @property
    def engines(self) -> list[str]:
        """The engines of `replicate`."""
        return [tool.key for tool in self.tools if tool.key in ("local", "spark")]

    @property
    def has_debezium(self) -> bool:
        """Whether Debezium is among the tools."""
        return any(tool.key in ("debezium", "informed") for tool in self.tools)


def _cases(kit: Kit) -> str:
    outcomes = {}
    for tool in kit.tools:
        with _run(tool) as run:
            outcomes[tool.title] = play_cases(run, read_cases())
    return page.cases_text(read_cases(), outcomes)


def _schema(kit: Kit) -> str:
    return _histories(kit, "schema", SUBJECTS.keys() - {Types})


def _types(kit: Kit) -> str:
    return _histories(kit, "types", {Types})


def _histories(kit: Kit, part: str, about: Collection[type[Subject]]) -> str:
    outcomes = {tool.title: Outcome() for tool in kit.tools}
    for seed in kit.seeds:
        histories = [
            history(f"h{number}", seed, kit.phases, with_entries=False, about=about) for number in range(kit.histories)
        ]
        for tool in kit.tools:
            with _run(tool) as run:
                outcome = play_histories(run, histories, seed)
            outcomes[tool.title] += outcome
            for played in histories:
                _write_wrong(_BUILD / f"{tool.key}-{part}-seed{seed}-{played.name}.sql", played, outcome)
    introduction = f"{_seeds(kit.seeds)}: {kit.histories} histories of {kit.phases} phases for each seed."
    return f"{introduction}\n\n{page.outcomes_text(outcomes, 'statements')}"


def _kills(kit: Kit) -> str:
    outcomes = {tool.title: Outcome() for tool in kit.tools}
    for seed in kit.seeds:
        for tool in kit.tools:
            with _run(tool) as run:
                outcomes[tool.title] += play_kills(run, seed, kit.kills)
    introduction = f"{_seeds(kit.seeds)}: {kit.kills} kills for each seed."
    return f"{introduction}\n\n{page.outcomes_text(outcomes, 'transactions')}"


def _cost(kit: Kit) -> str:
    with _setting(kit) as setting:
        rows = [figure.cells() for figure in cost.measure(setting, kit.engines, with_debezium=kit.has_debezium)]
    small = "; with so few, the start of a tool weighs most" if kit.rows < _MANY else ""
    return f"{kit.rows:,} orders{small}.\n\n{table(cost.HEAD, rows)}"


def _visible(kit: Kit) -> str:
    with _setting(kit) as setting:
        make_tables(setting.connection, kit.rows)
        setting.connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES".encode())
        rows = list(visible.measure(setting, kit.engines, with_debezium=kit.has_debezium))
    return f"Updates spread over {kit.rows:,} orders.\n\n{table(visible.HEAD, rows)}"


_PARTS: dict[str, Callable[[Kit], str]] = {
    "cases": _cases,
    "schema": _schema,
    "types": _types,
    "kills": _kills,
    "cost": _cost,
    "visible": _visible,
    "setup": lambda kit: page.setup_text(),
}


@contextmanager
def _run(tool: Tool) -> Iterator[Run]:
    """Yield a run on a server of its own; the log of the tool's last run stays in build/conformance/."""
    with (
        tempfile.TemporaryDirectory(prefix="logicalrep-conformance-") as folder,
        PortServer(find_installation(page.MAJOR)) as server,
    ):
        run = Run(tool, server.dsn, Path(folder) / tool.key)
        yield run
        _BUILD.mkdir(parents=True, exist_ok=True)
        shutil.copy(run.log, _BUILD / f"{tool.key}.log")


@contextmanager
def _setting(kit: Kit) -> Iterator[Setting]:
    with (
        tempfile.TemporaryDirectory(prefix="logicalrep-conformance-") as folder,
        PortServer(find_installation(page.MAJOR)) as server,
        connect_writer(server.dsn) as connection,
    ):
        yield Setting(server, connection, Path(folder), kit.rows, kit.seconds, 0)


def _write_wrong(file: Path, played: History, outcome: Outcome) -> None:
    """Write the statements of a history that is wrong, with its verdicts."""
    verdicts = [
        f"-- {table}: {verdict}"
        for table, verdict in outcome.verdicts.items()
        if table.partition(".")[0].removesuffix("_b") == played.name and verdict.result in ("wrong", "failed")
    ]
    file.unlink(missing_ok=True)
    if verdicts:
        file.write_text("\n".join([str(played), *verdicts, ""]), "utf-8")


def _seeds(seeds: range) -> str:
    return f"Seed {seeds[0]}" if len(seeds) == 1 else f"Seeds {seeds[0]} to {seeds[-1]}"


def _parsed_seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _available(tools: Sequence[Tool]) -> tuple[dict[Tool, str], list[str]]:
    """Return the versions of the tools that can run here, and sentences about the others."""
    versions, sentences = {}, []
    for tool in tools:
        try:
            versions[tool] = tool.version()
        except NotAvailableError as error:
            sentences.append(str(error))
    return versions, sentences


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    keys = ",".join(tool.key for tool in TOOLS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(_PARTS))
    parser.add_argument(
        "--only", default=keys, metavar="TOOLS", help=f"the tools of this repository: {keys}; '' for none"
    )
    parser.add_argument(
        "--tool", action="append", type=Tool.parse, default=[], metavar="NAME=COMMAND", help="another tool"
    )
    parser.add_argument(
        "--seeds", type=_parsed_seeds, default=range(1, 4), metavar="1-3", help="of the histories and of kills"
    )
    parser.add_argument("--histories", type=int, default=50, help="of each seed of schema and types")
    parser.add_argument("--phases", type=int, default=3, help="of each history")
    parser.add_argument("--kills", type=int, default=10, help="of each seed of kills")
    parser.add_argument("--rows", type=int, default=100_000, help="the orders of cost and visible")
    parser.add_argument("--seconds", type=float, default=20, help="the seconds of each measurement of visible")
    parser.add_argument("--write", action="store_true", help="put the parts into docs/conformance.md")
    return parser


def main() -> None:
    """Run the parts, print them, and write them if --write is given."""
    parser = _parser()
    options: Any = parser.parse_args()
    if unknown := set(options.parts) - _PARTS.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; the parts are {', '.join(_PARTS)}")
    versions, sentences = _available([*(tool for tool in TOOLS if tool.key in options.only.split(",")), *options.tool])
    if options.write and (sentences or options.tool):
        parser.error(f"the page has all its tools, and no other. {' '.join(sentences)}")
    kit = Kit(
        list(versions), options.seeds, options.histories, options.phases, options.kills, options.rows, options.seconds
    )
    for name in options.parts or _PARTS:
        introduction = " ".join([page.introduction([*versions.values()]), *sentences])
        text = f"{introduction}\n\n{_PARTS[name](kit)}"
        print(f"{text}\n", flush=True)
        if options.write:
            write_part(page.PAGE, name, text)


if __name__ == "__main__":
    main()
