"""The command `logicalrep check`."""

from __future__ import annotations

import argparse

from logicalrep.cli.destinations import add_destination_command
from logicalrep.cli.replicate_settings import add_options, settings_of
from logicalrep.cli.server_options import ArgumentsError, Commands, hide_secrets
from logicalrep.cli.terminal import say

_EXIT_CODES = """exit codes:
  0    replicate can begin
  1    an error, which the last line tells
  2    invalid arguments
  3    a requirement is not met: a line for each, and a script of SQL
"""


def add_check(commands: Commands) -> None:
    """Add the command."""
    parser = add_destination_command(
        commands,
        "check",
        _check,
        "say what replicate still needs of the server and the role, and start nothing",
        "Say what replicate needs and the server or the role lacks, and which tables stay out, with one script of SQL "
        "that mends all of it. Give it the options of replicate. It starts nothing: it only writes the names of slot "
        "and publication to the destination, which must be writable.",
        _EXIT_CODES,
        has_config=True,
    )
    add_options(parser)
    parser.add_argument("--print-sql", action="store_true", help="print the script alone, which is empty if all is met")


def _check(options: argparse.Namespace) -> int:
    hide_secrets(options)
    if options.print_sql and options.label is not None:
        raise ArgumentsError("a script is for one database: name it by --database")
    settings = settings_of(options)
    # Loaded late: the other commands need none of it.
    from logicalrep.pipeline.run.setup import query_unmet

    unmet = query_unmet(settings)
    if not options.print_sql:
        for finding in unmet.findings:
            say(str(finding))
        for warning in unmet.warnings:
            say(f"warning: {warning}")
        if not unmet.findings:
            print("ready")
        if unmet.script:
            print()
    print(unmet.script, end="")
    return 3 if unmet.findings else 0
