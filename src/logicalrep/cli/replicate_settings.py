"""The parts that `replicate` and `check` share: options, the settings that they describe, the end by a signal."""

from __future__ import annotations

import argparse
import signal
import threading
from typing import TYPE_CHECKING, Any

from logicalrep.cli.server_options import catalog_of, server_and_storage
from logicalrep.options import kinds
from logicalrep.pipeline.config.options import OPTIONS, ReplicateOptions, flag_of

if TYPE_CHECKING:
    from logicalrep.pipeline.config.settings import ReplicateSettings


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


def settings_of(options: argparse.Namespace) -> ReplicateSettings:
    """Return the settings that the arguments describe."""
    # What is wrong is said before the rest is loaded.
    arguments = options_of(options)
    connection, storage = server_and_storage(options)
    arguments["catalog"], arguments["catalog_options"] = catalog_of(options)
    # Loaded late: the other commands need none of it.
    from logicalrep.pipeline.config.settings import ReplicateSettings

    return ReplicateSettings(connection, storage.uri, storage_options=storage.storage_options, **arguments)


def ending_by_signals() -> threading.Event:
    """Return what the first signal to end sets; a second one ends the program at once."""
    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop
