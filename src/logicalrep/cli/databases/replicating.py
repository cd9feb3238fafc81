"""The command `replicate` for several databases."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack

from logicalrep.cli.databases.lines import DatabaseLines
from logicalrep.cli.databases.processes import DatabaseProcess, SharedParts, run_processes
from logicalrep.cli.destinations import with_section, worst_exit_code
from logicalrep.cli.failing import run_command
from logicalrep.cli.replicate_settings import settings_of, stop_on_signals
from logicalrep.observe.events import served_text
from logicalrep.observe.serving import serve
from logicalrep.options import kinds
from logicalrep.pipeline.config.databases import DatabaseSection
from logicalrep.pipeline.config.options import OPTIONS, flag_of
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.choice import choose_engine
from logicalrep.pipeline.engines.spark.shared import ServedSpark
from logicalrep.pipeline.requirements.apart import refuse_shared

_INTERRUPTED = 130


def replicate_several(options: argparse.Namespace, sections: Sequence[DatabaseSection]) -> int:
    """Check all arguments, then start all. Return the most severe exit code, or 130 after a signal."""
    # Copied before Spark changes it.
    environment = dict(os.environ)
    settings: dict[str, ReplicateSettings] = {}

    def read(section_options: argparse.Namespace) -> int:
        settings[section_options.label] = settings_of(section_options)
        return 0

    codes = [
        run_command(read, with_section(options, section, label=section.name), label=section.name)
        for section in sections
    ]
    if any(codes):
        return worst_exit_code(codes)
    refuse_shared(settings)
    for database in settings.values():
        choose_engine(database.engine).refuse_missing(over_connect=True)
    stop = stop_on_signals()
    with ExitStack() as stack:
        parts = SharedParts(
            lines=DatabaseLines(options.log or ("text" if options.verbose else None)),
            spark=stack.enter_context(ServedSpark(len(sections))),
            stop=stop,
            environment=environment,
            is_once=options.once is not None,
        )
        processes = [
            DatabaseProcess(
                section.name, section.to, ["replicate", "--database", section.name, *_arguments_of(options)], parts
            )
            for section in sections
        ]
        if options.listen is not None:
            from logicalrep.cli.databases.answers import answers_by_path

            address = stack.enter_context(serve(options.listen, list, answers=answers_by_path(processes)))
            parts.lines.write_event("all", served_text(address))
        run_processes(processes, parts)
    if stop.is_set():
        return _INTERRUPTED
    return worst_exit_code([1 if process.exit_code is None else process.exit_code for process in processes])


def _arguments_of(options: argparse.Namespace) -> list[str]:
    """Return the command's arguments for each process; each serves its own page at a free port."""
    arguments = [f"--config={options.config}"]
    for name, option in OPTIONS.items():
        value = getattr(options, name)
        if value is not None and name not in ("config", "listen"):
            arguments.append(flag_of(name) if option.read is kinds.flag else f"{flag_of(name)}={value}")
    if options.listen is not None:
        arguments.append("--listen=127.0.0.1:0")
    if options.catalog is not None:
        arguments.append(f"--catalog={options.catalog}")
    if options.quiet:
        arguments.append("--quiet")
    if options.verbose:
        arguments.append("--verbose")
    if options.log is not None:
        arguments.append(f"--log={options.log}")
    return arguments
