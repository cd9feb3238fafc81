"""The command `logicalrep check`."""

from __future__ import annotations

import argparse

from logicalrep.cli.destinations import add_destination_command
from logicalrep.cli.replicate_settings import add_options, settings_of
from logicalrep.cli.server_options import ArgumentsError, Commands, hide_secrets
from logicalrep.cli.terminal import say

_EXIT_CODES = """exit codes:
  0    replicate can start, and no table would stop
  1    an error: see the last line
  2    invalid arguments
  3    requirements are not met: a line for each
"""


def add_check(commands: Commands) -> None:
    parser = add_destination_command(
        commands,
        "check",
        _check,
        "list the requirements of replicate that are not met",
        "List the requirements of replicate that the server or the role does not meet, and the tables that replicate "
        "would skip; --print-sql prints one SQL script for both. Use the options of replicate. check replicates "
        "nothing: it only writes the names of slot and publication to the destination, which must be writable.",
        _EXIT_CODES,
        has_config=True,
    )
    add_options(parser)
    parser.add_argument(
        "--print-sql", action="store_true", help="print only the script, which is empty if all requirements are met"
    )


def _check(options: argparse.Namespace) -> int:
    hide_secrets(options)
    if options.print_sql and options.label is not None:
        raise ArgumentsError("--print-sql needs one database: select it with --database")
    settings = settings_of(options)
    # Imported here, because other commands do not need it.
    from logicalrep.pipeline.run.setup import query_unmet

    unmet = query_unmet(settings)
    if options.print_sql:
        print(unmet.script, end="")
    else:
        # The script of hundreds of tables would push these lines off the screen.
        for finding in unmet.unmet:
            say(str(finding))
        for warning in unmet.warnings:
            say(f"warning: {warning}")
        if unmet.script:
            print("To print all statements as one SQL script, add --print-sql.")
        if not unmet.unmet:
            print("ready")
    return 3 if unmet.unmet else 0
