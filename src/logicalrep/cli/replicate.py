"""The command `logicalrep replicate`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logicalrep.cli.server_options import (
    Commands,
    add_destination_command,
    hide_secrets,
    not_negative,
    server_and_storage,
)
from logicalrep.observe.log import log_to_standard_error

if TYPE_CHECKING:
    from logicalrep.observe.observer import Observer

_EXIT_CODES = """exit codes:
  0    all that had committed at the start is in the tables (--once)
  1    an error, which the last line tells
  2    invalid arguments
  3    somebody has to do something first: the last line has the statement, or the destination is paused (--once)
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
        "Keep the tables of a database as Delta tables: make the publication and the slot, load the rows "
        "that are there, and apply what commits. The same line goes on where it ended, however it ended. The table "
        "schema.table is the Delta table DESTINATION/schema/table.",
        _EXIT_CODES,
    )
    parser.add_argument("--publication", metavar="NAME", help="the publication (default: one made for the destination)")
    parser.add_argument("--slot", metavar="NAME", help="the replication slot (default: one made for the destination)")
    parser.add_argument(
        "--failover", action="store_true", help="have standbys keep the slot, for a failover (PostgreSQL 17)"
    )
    parser.add_argument("--tables", metavar="A,B", help="only these tables: schema.table, or table, as in SQL")
    parser.add_argument(
        "--once", action="store_true", help="end when all that had committed at the start is in the tables"
    )
    parser.add_argument(
        "--retry-timeout", metavar="SECONDS", type=not_negative,
        help="the longest wait for a server that is away (default: 60 with --once, else for as long as it takes)",
    )  # fmt: skip
    parser.add_argument(
        "--every", metavar="SECONDS", type=not_negative, default=10.0,
        help="the time between two commits of a table; 0 is as fast as it goes (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "--keep", metavar="HOURS", type=not_negative, default=24.0,
        help="how long old versions of a table can be read (default: 24)",
    )  # fmt: skip
    parser.add_argument(
        "--unrepresentable", choices=["error", "null", "text"], default="error",
        help="what becomes of values that the column's type cannot hold, such as a timestamp of infinity: the table "
        "is stopped, NULL, or NULL with the server's text in a column beside it (default: error)",
    )  # fmt: skip
    parser.add_argument(
        "--deletes", choices=("hard", "soft"), default="hard",
        help="whether a deleted row goes, or stays with _deleted and _deleted_at (default: hard)",
    )  # fmt: skip
    parser.add_argument(
        "--history", action="store_true", help="keep every version of each row in a second table TABLE~history"
    )
    parser.add_argument(
        "--append", action="store_true", help="keep all changes, one after another, in a second table TABLE~changes"
    )
    parser.add_argument(
        "--origin", choices=("any", "none"), default="any",
        help="none leaves out changes that were replayed from another server, as in two-way replication; loads copy "
        "rows of every origin (PostgreSQL 16; default: any)",
    )  # fmt: skip
    parser.add_argument(
        "--config", metavar="FILE", help="a YAML file with the settings of tables that have some of their own"
    )
    parser.add_argument(
        "--load-sessions", metavar="COUNT", type=_positive, default=4,
        help="the most sessions that copy rows at the same time (default: 4)",
    )  # fmt: skip
    parser.add_argument(
        "--load-rate", metavar="MB", type=not_negative, help="the most megabytes a second that each of them copies"
    )
    parser.add_argument(
        "--listen", metavar="HOST:PORT",
        help="serve a page at / and metrics for Prometheus at /metrics; a port alone is one of 127.0.0.1",
    )  # fmt: skip
    shows = parser.add_mutually_exclusive_group()
    shows.add_argument("--quiet", action="store_true", help="show only warnings")
    shows.add_argument(
        "-v", "--verbose", action="store_true",
        help="write the log to standard error instead: a line of figures for each batch, with times and levels",
    )  # fmt: skip


def _replicate(options: argparse.Namespace) -> int:
    hide_secrets(options)
    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        # A second signal ends the program at once.
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    # Before the rest is loaded, which takes seconds on a busy machine.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    connection, storage = server_and_storage(options)
    # Loaded late: the other commands need none of it.
    from logicalrep.observe.terminal import show_progress
    from logicalrep.pipeline.catalog.publishing import PublicationNeededError
    from logicalrep.pipeline.loop import TablesStoppedError
    from logicalrep.pipeline.run import replicate
    from logicalrep.pipeline.state.requests import PausedError

    try:
        with _log_to_stderr() if options.verbose else show_progress(quiet=options.quiet) as observer:
            replicate(
                connection,
                storage.uri,
                publication=options.publication,
                slot=options.slot,
                failover=options.failover,
                tables=[options.tables] if options.tables else (),
                once=options.once,
                retry_timeout=options.retry_timeout,
                every=options.every,
                keep=options.keep,
                unrepresentable=options.unrepresentable,
                deletes=options.deletes,
                history=options.history,
                append=options.append,
                origin=options.origin,
                config=options.config,
                storage_options=storage.storage_options,
                load_sessions=options.load_sessions,
                load_rate=options.load_rate,
                listen=options.listen,
                observer=observer,
                stop=stop,
            )
    except (PublicationNeededError, PausedError, TablesStoppedError) as error:
        print(error, file=sys.stderr)
        return 4 if isinstance(error, TablesStoppedError) else 3
    return 130 if stop.is_set() else 0


@contextmanager
def _log_to_stderr() -> Iterator[Observer]:
    """Let the log go to standard error, and yield a receiver that shows nothing else."""
    from logicalrep.observe.observer import Observer

    log_to_standard_error(logging.getLogger("logicalrep"))
    yield Observer()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number
