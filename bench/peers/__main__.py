"""Other tools beside ours, by the same tables and statements: `python -m bench.peers [PART …] [--rows ROWS] [--write]`.

The parts, all of them by default:

- right: the cases of cases.sql, and whether the rows in the end are those that a plain SELECT has.
- cost: a first load and a backlog, with the processor seconds and the most memory of all of a tool's processes.
- visible: the seconds from a commit until its rows are visible, at 200 changes a second.
- setup: what one has to write.

It prints them in Markdown; with --write they stand in docs/comparison.md too. Debezium needs Maven and Java; where they
are missing, a sentence says so.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.pages import table, write_part
from bench.peers import cost, debezium, right, visible
from bench.peers.page import PAGE, introduction, right_text, setup_text
from bench.peers.server import PortServer
from bench.peers.workload import make_tables
from bench.tables.setting import Setting
from bench.writer import connect_writer
from logicalrep.postgres.local_server import find_installation


def _right(setting: Setting, engines: Sequence[str], with_debezium: bool) -> str:
    outcome = right.measure(setting, engines, with_debezium=with_debezium)
    return f"\n\n{right_text(outcome)}"


def _cost(setting: Setting, engines: Sequence[str], with_debezium: bool) -> str:
    rows = [figure.cells() for figure in cost.measure(setting, engines, with_debezium=with_debezium)]
    small = "; with so few, the start of a tool weighs most" if setting.scale < _MANY else ""
    return f"{setting.scale:,} orders{small}.\n\n{table(cost.HEAD, rows)}"


def _visible(setting: Setting, engines: Sequence[str], with_debezium: bool) -> str:
    make_tables(setting.connection, setting.scale)
    setting.connection.execute("CREATE PUBLICATION peers FOR ALL TABLES")
    rows = list(visible.measure(setting, engines, with_debezium=with_debezium))
    return f"Updates spread over {setting.scale:,} orders.\n\n{table(visible.HEAD, rows)}"


def _setup(setting: Setting, engines: Sequence[str], with_debezium: bool) -> str:
    return f"\n\n{setup_text(setting.server)}"


_MANY = 1_000_000
"""The orders from which on a start hardly counts."""
_PARTS: dict[str, Callable[[Any, Sequence[str], bool], str]] = {
    "right": _right,
    "cost": _cost,
    "visible": _visible,
    "setup": _setup,
}


def main() -> None:
    """Measure, print, and write if that is wanted."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--rows", type=int, default=100_000, help="the orders; a backlog has half as many changes")
    parser.add_argument("--seconds", type=float, default=20, help="the seconds of each measurement of `visible`")
    parser.add_argument("--engines", default="local,spark", help="the engines of `replicate`")
    parser.add_argument("--write", action="store_true", help="put the parts into docs/comparison.md")
    options = parser.parse_args()
    if unknown := set(options.parts) - _PARTS.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(_PARTS)}")
    engines = options.engines.split(",")
    with_debezium, left_out = True, ""
    try:
        debezium.build()
    except debezium.NotAvailableError as error:
        if options.write:
            parser.error(f"the page keeps what it has of Debezium. {error}")
        with_debezium, left_out = False, f" {error}"
    for name in options.parts or _PARTS:
        folder = Path(tempfile.mkdtemp(prefix="logicalrep-peers-"))
        try:
            with PortServer(find_installation(18)) as server, connect_writer(server.dsn) as connection:
                (version,) = connection.execute("SHOW server_version").fetchone()
                opening = introduction(version, engines, with_debezium=with_debezium) + left_out
                setting = Setting(server, connection, folder, options.rows, options.seconds, 0)
                text = f"{opening} {_PARTS[name](setting, engines, with_debezium)}".replace(" \n", "\n")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{text}\n", flush=True)
        if options.write:
            write_part(PAGE, name, text)


if __name__ == "__main__":
    main()
