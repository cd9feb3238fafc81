"""The command `logicalrep replicate`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logicalrep.cli.destinations import add_destination_command
from logicalrep.cli.replicate_settings import add_options, say_start, settings_of, stop_on_signals
from logicalrep.cli.server_options import Commands, hide_secrets
from logicalrep.observe.calls import calling_on_error
from logicalrep.observe.log import log_to_standard_error
from logicalrep.pipeline.engines.choice import choose_engine

if TYPE_CHECKING:
    from logicalrep.observe.observer import Observer
    from logicalrep.pipeline.config.databases import DatabaseSection

_EXIT_CODES = """exit codes:
  0    everything committed before the start is applied (--once)
  1    an error: see the last line
  2    invalid arguments
  3    requirements are not met: a line for each, and a SQL script; or the destination is paused (--once)
  4    some tables are stopped; the other tables are up to date (--once)
  130  ended by Ctrl-C or SIGTERM, after the current batch; while it starts, at once
With several databases: the lowest of 1, 2, 3 and 4 that a database ended with.
"""


def add_replicate(commands: Commands) -> None:
    parser = add_destination_command(
        commands,
        "replicate",
        _replicate,
        "replicate the tables of a database to Delta or Iceberg tables",
        "Replicate the tables of a database to Delta or Iceberg tables: create the publication and the slot, load "
        "existing rows, and apply commits. After a stop or a kill, start the same command again: it resumes where it "
        "stopped. The table schema.table becomes DESTINATION/schema/table.",
        _EXIT_CODES,
        run_several=_replicate_several,
        has_config=True,
    )
    # The socket of the parent process, which runs a process for each of several databases.
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    add_options(parser)
    shows = parser.add_mutually_exclusive_group()
    shows.add_argument("--quiet", action="store_true", help="show only warnings")
    shows.add_argument(
        "-v", "--verbose", action="store_true",
        help="write the log to standard error, with a line of figures for each batch, in place of progress",
    )  # fmt: skip
    shows.add_argument("--log", choices=["text", "json"], help="text: the same as -v; json: log lines as JSON objects")


def _replicate(options: argparse.Namespace) -> int:
    hide_secrets(options)
    stop = stop_on_signals()
    with calling_on_error(options.call_on_stop, options.to):
        settings = settings_of(options)
    # The imports below take seconds on a busy machine.
    if not (options.quiet or options.verbose or options.log):
        say_start(choose_engine(settings.engine))
    from logicalrep.pipeline.engines.own_process import importing

    with importing():
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
        # The operator may have only this output.
        print(error, *filter(None, [error.script]), sep="\n\n", file=sys.stderr)
        return 3
    except (PublicationNeededError, PausedError, TablesStoppedError) as error:
        print(error, file=sys.stderr)
        return 4 if isinstance(error, TablesStoppedError) else 3
    return 130 if stop.is_set() else 0


def _replicate_several(options: argparse.Namespace, sections: Sequence[DatabaseSection]) -> int:
    # Imported here, because a single database does not need it.
    from logicalrep.cli.databases.replicating import replicate_several

    return replicate_several(options, sections)


@contextmanager
def _log_to_stderr(*, as_json: bool) -> Iterator[Observer]:
    from logicalrep.observe.observer import Observers

    log_to_standard_error(logging.getLogger("logicalrep"), as_json=as_json)
    yield Observers()
