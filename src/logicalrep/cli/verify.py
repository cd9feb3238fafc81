"""The command `logicalrep verify`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

from logicalrep.cli.destinations import add_destination_command, with_database_label
from logicalrep.cli.server_options import Commands, catalog_settings_of, non_negative_number, server_and_storage
from logicalrep.cli.terminal import TerminalStyle, say
from logicalrep_runtime.visible import visible, visible_json

if TYPE_CHECKING:
    from logicalrep.pipeline.verify.verdicts import Difference, Verdict

_EXIT_CODES = """exit codes:
  0    all tables are equal
  1    an error: see the last line
  2    invalid arguments
  4    some rows differ
  5    no row is proven to differ, but some tables are undecided
  130  ended by Ctrl-C
"""
_CODES = {"equal": 0, "different": 4, "undecided": 5}


def add_verify(commands: Commands) -> None:
    parser = add_destination_command(
        commands,
        "verify",
        _verify,
        "compare the tables of a destination with the server row by row",
        "Compare each stored table row by row with the rows that the server publishes. Both sides may change "
        "meanwhile: verify reads rows that differ again until they are equal, or proven to differ.",
        _EXIT_CODES,
    )
    parser.add_argument("--tables", metavar="A,B", help="compare only these tables: schema.table or table, as in SQL")
    parser.add_argument(
        "--patience", metavar="SECONDS", type=non_negative_number, default=60.0,
        help="the time until rows that differ without proof count as undecided (default: 60)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a JSON object for each table, and a total")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print values of rows that differ, not only their keys"
    )


def _verify(options: argparse.Namespace) -> int:
    settings, storage = server_and_storage(options)
    # Imported here, because other commands do not need it.
    from logicalrep.pipeline.verify.verifying import verify
    from logicalrep.transactions.table_names import table_names

    tables = table_names(options.tables) if options.tables else []
    style = TerminalStyle(sys.stdout)
    results: Counter[str] = Counter()
    rows = 0
    verdicts = verify(
        settings,
        storage,
        tables,
        catalog=catalog_settings_of(options),
        patience=options.patience,
        with_values=options.verbose,
        warn=lambda text: say(f"warning: {text}", sys.stderr),
    )
    for verdict in verdicts:
        results[verdict.result] += 1
        rows += verdict.rows
        lines = [verdict_json(verdict, options.label)] if options.json else verdict_lines(verdict, style)
        print("\n".join(lines), flush=True)
    if options.json:
        counts = {"tables": sum(results.values()), "rows": rows, **{key: results[key] for key in _CODES}}
        print(json.dumps(with_database_label(counts, options.label)))
    else:
        counted = ", ".join(f"{results[key]} {key}" for key in _CODES if results[key])
        total = sum(results.values())
        of = f"{total} table{'s' * (total != 1)}, {rows:,} row{'s' * (rows != 1)}"
        print(style.bold(f"{of}: {counted or 'nothing to compare'}"))
    return next((_CODES[key] for key in ("different", "undecided") if results[key]), 0)


def verdict_json(verdict: Verdict, label: str | None = None) -> str:
    return visible_json(
        with_database_label(
            {
                "table": str(verdict.table),
                "result": verdict.result,
                "rows": verdict.rows,
                "differing": verdict.differing,
                "is_least": verdict.is_least,
                "examples": [
                    {
                        "kind": example.kind,
                        "key": example.key,
                        "server": example.server,
                        "destination": example.destination,
                    }
                    for example in verdict.examples
                ],
                "reason": verdict.reason,
            },
            label,
        )
    )


def verdict_lines(verdict: Verdict, style: TerminalStyle) -> list[str]:
    if verdict.result == "equal":
        return [visible(f"{verdict.table}: equal, {verdict.rows:,} rows")]
    if verdict.result == "undecided":
        return [style.red(f"{verdict.table}: undecided: {verdict.reason}")]
    least = "at least " if verdict.is_least else ""
    head = f"{verdict.table}: different, {least}{verdict.differing:,} of {verdict.rows:,} rows"
    return [style.red(head), *(visible(f"  {line}") for example in verdict.examples for line in _example(example))]


def _example(example: Difference) -> list[str]:
    key = ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in example.key.items())
    lines = [f"{example.kind} {key}".rstrip()]
    for side, row in (("server", example.server), ("destination", example.destination)):
        if row is not None:
            lines.append(f"  {side}: {json.dumps(row, ensure_ascii=False)}")
    return lines
