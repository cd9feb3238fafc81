"""The command `logicalrep replicate`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from logicalrep.cli.server_options import (
    Commands,
    add_destination_command,
    catalog_of,
    hide_secrets,
    server_and_storage,
)
from logicalrep.cli.terminal import say
from logicalrep.observe.log import log_to_standard_error
from logicalrep.options import kinds
from logicalrep.pipeline.options import OPTIONS, ReplicateOptions, flag_of

if TYPE_CHECKING:
    from logicalrep.observe.observer import Observer

_EXIT_CODES = """exit codes:
  0    all that had committed at the start is in the tables (--once)
  1    an error, which the last line tells
  2    invalid arguments
  3    somebody has to do something first: a line for each, and a script of SQL; or the destination is paused (--once)
  4    some tables are stopped; the others are up to date (--once)
  130  ended by Ctrl-C or SIGTERM, after the batch that was being applied; at once while it starts
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
    )
    add_options(parser)
    shows = parser.add_mutually_exclusive_group()
    shows.add_argument("--quiet", action="store_true", help="show only warnings")
    shows.add_argument(
        "-v", "--verbose", action="store_true",
        help="write the log to standard error instead: a line of figures for each batch, with times and levels",
    )  # fmt: skip
    shows.add_argument("--log", choices=["text", "json"], help="the same as -v, or each line of it as a JSON object")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `replicate`, from their table."""
    for name, known in OPTIONS.items():
        text = f"{known.doc[0].lower()}{known.doc[1:]}".rstrip(".").replace("`", "")
        if known.read is kinds.flag:
            parser.add_argument(flag_of(name), action="store_const", const="true", help=text)
        else:
            words = known.read.words if isinstance(known.read, kinds.Choice) else None
            default = f" (default: {known.default})".replace("`", "") if known.default else ""
            parser.add_argument(
                flag_of(name), metavar=known.metavar or f"{{{','.join(words or ())}}}", help=f"{text}{default}"
            )


def options_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the given options as arguments of `replicate`. Raises OptionError for an invalid value."""
    arguments = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
    ReplicateOptions("", options.to, catalog=catalog_of(options)[0], **arguments)
    return arguments


def _replicate(options: argparse.Namespace) -> int:
    hide_secrets(options)
    # What is wrong is said before the rest is loaded, which takes seconds on a busy machine.
    arguments = options_of(options)
    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        # A second signal ends the program at once.
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    # Before the rest is loaded too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    if not (options.quiet or options.verbose or options.log):
        say(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} logicalrep {version('logicalrep')} starts", sys.stderr)
    connection, storage = server_and_storage(options)
    catalog, catalog_options = catalog_of(options)
    # Loaded late: the other commands need none of it.
    from logicalrep.observe.terminal import show_progress
    from logicalrep.pipeline.catalog.publication_plan import PublicationNeededError
    from logicalrep.pipeline.loop import TablesStoppedError
    from logicalrep.pipeline.requirements.requirements import UnmetError
    from logicalrep.pipeline.run import replicate
    from logicalrep.pipeline.state.requests import PausedError

    try:
        log = options.log or ("text" if options.verbose else None)
        with _log_to_stderr(as_json=log == "json") if log else show_progress(quiet=options.quiet) as observer:
            replicate(
                connection,
                storage.uri,
                storage_options=storage.storage_options,
                catalog=catalog,
                catalog_options=catalog_options,
                observer=observer,
                stop=stop,
                **arguments,
            )
    except UnmetError as error:
        # The script is for a person who has only this line's output.
        print(error, *filter(None, [error.script]), sep="\n\n", file=sys.stderr)
        return 3
    except (PublicationNeededError, PausedError, TablesStoppedError) as error:
        print(error, file=sys.stderr)
        return 4 if isinstance(error, TablesStoppedError) else 3
    return 130 if stop.is_set() else 0


@contextmanager
def _log_to_stderr(*, as_json: bool) -> Iterator[Observer]:
    """Let the log go to standard error, and yield a receiver that shows nothing else."""
    from logicalrep.observe.observer import Observer

    log_to_standard_error(logging.getLogger("logicalrep"), as_json=as_json)
    yield Observer()
