"""The parts shared by `replicate`, `check` and `resync`: options, settings, signals and the first line."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from logicalrep.cli.server_options import catalog_of, server_and_storage
from logicalrep.cli.terminal import say
from logicalrep.observe.log import timed
from logicalrep.options import kinds
from logicalrep.pipeline.config.options import OPTIONS, ReplicateOptions, flag_of

if TYPE_CHECKING:
    from logicalrep.pipeline.config.settings import ReplicateSettings
    from logicalrep.pipeline.engines.choice import EngineChoice


def add_options(parser: argparse.ArgumentParser, names: Iterable[str] = OPTIONS) -> None:
    for name in names:
        option = OPTIONS[name]
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
    """Return the options as keyword arguments of ReplicateSettings. Raises OptionError for an invalid value."""
    arguments = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
    ReplicateOptions("", options.to, catalog=catalog_of(options)[0], **arguments)
    return arguments


def settings_of(options: argparse.Namespace) -> ReplicateSettings:
    # Options are checked before the slow imports.
    arguments = replicate_arguments(options)
    connection, storage = server_and_storage(options)
    arguments["catalog"], arguments["catalog_options"] = catalog_of(options)
    from logicalrep.pipeline.config.settings import ReplicateSettings

    return ReplicateSettings(connection, storage.uri, storage_options=storage.storage_options, **arguments)


def say_start(choice: EngineChoice) -> None:
    """Print the first line of a run, with its engine."""
    text = f"logicalrep {version('logicalrep')} starts, engine {choice.name}: {choice.reason}"
    say(timed(text), sys.stderr)


def stop_on_signals() -> threading.Event:
    """Return the event that the first SIGINT or SIGTERM sets; a second signal ends the program at once."""
    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return stop
