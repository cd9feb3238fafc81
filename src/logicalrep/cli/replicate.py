"""The command `logicalrep replicate`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from logicalrep.cli.destinations import add_destination_command
from logicalrep.cli.replicate_settings import add_options, settings_of, stop_on_signals
from logicalrep.cli.server_options import (
    Commands,
    hide_secrets,
)
from logicalrep.cli.terminal import say
from logicalrep.observe.log import log_to_standard_error, timed

if TYPE_CHECKING:
    from logicalrep.observe.observer import Observer
    from logicalrep.pipeline.config.databases import DatabaseSection

_EXIT_CODES = """exit codes:
  0    all that was committed before the start is in the tables (--once)
  1    an error, which the last line tells
  2    invalid arguments
  3    somebody has to do something first: a line for each, and a script of SQL; or the destination is paused (--once)
  4    some tables are stopped; the others are up to date (--once)
  130  ended by Ctrl-C or SIGTERM, after the batch that was being applied; at once while it starts
With several databases it is the first of 1, 2, 3 and 4 with which one of them ended.
"""


def add_replicate(commands: Commands) -> None:
    """Add the command."""
    parser = add_destination_command(
        commands,
        "replicate",
        _replicate,
        "keep the tables of a database as Delta tables",
        "Keep the tables of a database as Delta tables: make the publication and the slot, load the rows that are "
        "there, and apply what commits. Start the same line again after a stop or a kill: it goes on where it ended. "
        "The table schema.table is the Delta table DESTINATION/schema/table.",
        _EXIT_CODES,
        run_several=_replicate_several,
        has_config=True,
    )
    # The socket of the process that has started this one for one of several databases.
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    add_options(parser)
    shows = parser.add_mutually_exclusive_group()
    shows.add_argument("--quiet", action="store_true", help="show only warnings")
    shows.add_argument(
        "-v", "--verbose", action="store_true",
        help="write the log to standard error instead: a line of figures for each batch, with times and levels",
    )  # fmt: skip
    shows.add_argument("--log", choices=["text", "json"], help="the same as -v, or each line of it as a JSON object")


def _replicate(options: argparse.Namespace) -> int:
    hide_secrets(options)
    stop = stop_on_signals()
    settings = settings_of(options)
    # Before the rest is loaded, which takes seconds on a busy machine.
    if not (options.quiet or options.verbose or options.log):
        say(timed(f"logicalrep {version('logicalrep')} starts"), sys.stderr)
    from logicalrep.observe.observer import Observers
    from logicalrep.observe.terminal import show_progress
    from logicalrep.pipeline.catalog.publication_plan import PublicationNeededError
    from logicalrep.pipeline.requirements.requirements import UnmetError
    from logicalrep.pipeline.run.loop import TablesStoppedError
    from logicalrep.pipeline.run.run import replicate_with
    from logicalrep.pipeline.state.requests import PausedError

    parent = None
    if options.parent is not None:
        from logicalrep.cli.databases.parent import ParentProcess

        parent = ParentProcess(options.parent, stop)
    try:
        log = options.log or ("text" if options.verbose else None)
        with _log_to_stderr(as_json=log == "json") if log else show_progress(quiet=options.quiet) as observer:
            observers = observer if parent is None else Observers(observer, parent)
            replicate_with(settings, observers, stop=stop, shared=parent)
    except UnmetError as error:
        # The script is for a person who has only this line's output.
        print(error, *filter(None, [error.script]), sep="\n\n", file=sys.stderr)
        return 3
    except (PublicationNeededError, PausedError, TablesStoppedError) as error:
        print(error, file=sys.stderr)
        return 4 if isinstance(error, TablesStoppedError) else 3
    return 130 if stop.is_set() else 0


def _replicate_several(options: argparse.Namespace, sections: Sequence[DatabaseSection]) -> int:
    # Loaded late: one database needs none of it.
    from logicalrep.cli.databases.replicating import replicate_several

    return replicate_several(options, sections)


@contextmanager
def _log_to_stderr(*, as_json: bool) -> Iterator[Observer]:
    """Let the log go to standard error, and yield a receiver that shows nothing else."""
    from logicalrep.observe.observer import Observers

    log_to_standard_error(logging.getLogger("logicalrep"), as_json=as_json)
    yield Observers()
