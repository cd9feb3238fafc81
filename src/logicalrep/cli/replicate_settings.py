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
    for name, option in OPTIONS.items():
        text = f"{option.doc[0].lower()}{option.doc[1:]}".rstrip(".").replace("`", "")
        if option.read is kinds.flag:
            parser.add_argument(flag_of(name), action="store_const", const="true", help=text)
        else:
            choices = option.read.words if isinstance(option.read, kinds.Choice) else None
            default = f" (default: {option.default})".replace("`", "") if option.default else ""
            parser.add_argument(
                flag_of(name), metavar=option.metavar or f"{{{','.join(choices or ())}}}", help=f"{text}{default}"
            )


def replicate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the given options as arguments of `replicate`. Raises OptionError for an invalid value."""
    arguments = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
    ReplicateOptions("", options.to, catalog=catalog_of(options)[0], **arguments)
    return arguments


def settings_of(options: argparse.Namespace) -> ReplicateSettings:
    """Return the settings that the arguments describe."""
    # What is wrong is said before the rest is loaded.
    arguments = replicate_arguments(options)
    connection, storage = server_and_storage(options)
    arguments["catalog"], arguments["catalog_options"] = catalog_of(options)
    # Loaded late: the other commands need none of it.
    from logicalrep.pipeline.config.settings import ReplicateSettings

    return ReplicateSettings(connection, storage.uri, storage_options=storage.storage_options, **arguments)


def stop_on_signals() -> threading.Event:
    """Return what the first signal to end sets; a second one ends the program at once."""
    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop
