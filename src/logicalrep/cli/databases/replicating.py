"""The command `replicate` for several databases."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack

from logicalrep.cli.databases.lines import DatabaseLines
from logicalrep.cli.databases.processes import DatabaseProcess, SharedParts, run_processes
from logicalrep.cli.destinations import with_section, worst_code
from logicalrep.cli.failing import run_command
from logicalrep.cli.replicate_settings import ending_by_signals, settings_of
from logicalrep.observe.serving import serve
from logicalrep.options import kinds
from logicalrep.pipeline.config.databases import DatabaseSection
from logicalrep.pipeline.config.options import OPTIONS, flag_of
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.spark.shared import ServedSpark
from logicalrep.pipeline.engines.start import refuse_missing
from logicalrep.pipeline.requirements.apart import refuse_shared

_INTERRUPTED = 130


def replicate_several(options: argparse.Namespace, sections: Sequence[DatabaseSection]) -> int:
    """Replicate each database in a process of its own; return the worst exit code, or 130 after a signal to end.

    What is wrong in the arguments or in the file is told of all databases before any of them starts.
    """
    # Taken before Spark adds to it.
    environment = dict(os.environ)
    settings: dict[str, ReplicateSettings] = {}

    def read(of_one: argparse.Namespace) -> int:
        settings[of_one.label] = settings_of(of_one)
        return 0

    codes = [run_command(read, with_section(options, each, label=each.name), label=each.name) for each in sections]
    if any(codes):
        return worst_code(codes)
    refuse_shared(settings)
    has_spark = any(each.engine == "spark" for each in settings.values())
    if has_spark:
        refuse_missing("spark", over_connect=True)
    stop = ending_by_signals()
    with ExitStack() as stack:
        parts = SharedParts(
            lines=DatabaseLines(options.log or ("text" if options.verbose else None)),
            spark=stack.enter_context(ServedSpark(len(sections))),
            stop=stop,
            environment=environment,
            is_once=options.once is not None,
        )
        processes = [
            DatabaseProcess(each.name, each.to, ["replicate", "--database", each.name, *_arguments_of(options)], parts)
            for each in sections
        ]
        if options.listen is not None:
            from logicalrep.cli.databases.answers import answers_of

            address = stack.enter_context(serve(options.listen, list, answers=answers_of(processes)))
            parts.lines.tell("all", f"the page is at {address}, the metrics are at {address}metrics")
        run_processes(processes, parts)
    if stop.is_set():
        return _INTERRUPTED
    return worst_code([1 if each.exit_code is None else each.exit_code for each in processes])


def _arguments_of(options: argparse.Namespace) -> list[str]:
    """Return the arguments that hold for all databases, but for those that are none of a process."""
    found = [f"--config={options.config}"]
    for name, known in OPTIONS.items():
        value = getattr(options, name)
        if value is not None and name not in ("config", "listen"):
            found.append(flag_of(name) if known.read is kinds.flag else f"{flag_of(name)}={value}")
    if options.listen is not None:
        found.append("--listen=127.0.0.1:0")
    if options.catalog is not None:
        found.append(f"--catalog={options.catalog}")
    if options.quiet:
        found.append("--quiet")
    if options.verbose:
        found.append("--verbose")
    if options.log is not None:
        found.append(f"--log={options.log}")
    return found
