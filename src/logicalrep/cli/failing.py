"""Runs commands, and turns their errors into a line on standard error and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from logicalrep.cli.server_options import ArgumentsError
from logicalrep.cli.terminal import TerminalStyle
from logicalrep.options.kinds import OptionError
from logicalrep.transactions.table_names import TableNameError
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import visible


class UsageError(LogicalRepError):
    """Invalid arguments; exit code 2."""

    code = "USAGE"


class StatementError(LogicalRepError):
    """The server refused or ended a statement; exit code 1."""

    code = "SERVER_ERROR"


def run_command(
    run: Callable[[argparse.Namespace], int], options: argparse.Namespace, *, label: str | None = None
) -> int:
    """Return 1 for an error, 2 for invalid arguments; `label`, a database's name, precedes the error."""
    try:
        return run(options)
    except BrokenPipeError:
        raise
    except Exception as error:
        text, code = _error_text(error)
    sys.stdout.flush()
    print(f"{TerminalStyle(sys.stderr).red('error:')} {'' if label is None else f'{label}: '}{text}", file=sys.stderr)
    return code


def _error_text(error: Exception) -> tuple[str, int]:
    # Raises an unexpected error again.
    if isinstance(error, UsageError | OptionError):
        return str(error), 2
    if isinstance(error, TableNameError | ArgumentsError):
        return visible(error.description), 2
    if isinstance(error, LogicalRepError):
        return str(error), 1
    if isinstance(error, OSError):
        return visible(str(error)), 1
    if isinstance(error, MemoryError):
        return "the machine does not have enough memory for the input", 1
    if isinstance(error, ModuleNotFoundError):
        extras = "run pip install 'logicalrep[local]', or 'logicalrep[replicate]' with Spark"
        return f"{error.name} is not installed: {extras}", 1
    # Commands without a server do not import psycopg.
    psycopg = sys.modules.get("psycopg")
    if psycopg is None or not isinstance(error, psycopg.Error):
        raise error
    return str(StatementError(" ".join(str(error).split()))), 1
