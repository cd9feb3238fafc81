"""Commands for one destination, or for each database of a file."""

from __future__ import annotations

import argparse
import copy
import functools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from logicalrep.cli.failing import run_command
from logicalrep.cli.server_options import ArgumentsError, Commands, add_server, hide_secrets
from logicalrep.cli.terminal import say

if TYPE_CHECKING:
    from logicalrep.pipeline.config.databases import DatabaseSection

Run: TypeAlias = Callable[[argparse.Namespace], int]
RunSeveral: TypeAlias = "Callable[[argparse.Namespace, Sequence[DatabaseSection]], int]"

_DATABASE_ARGUMENTS = {"dsn": "--dsn", "dsn_file": "--dsn-file", "password_command": "--password-command", "to": "--to"}
_NAMES = ("slot", "publication")
_SHARED_OPTIONS = (*_NAMES, "engine")
"""The options of `replicate` that other commands have too."""
_CODES_BY_SEVERITY = (1, 2, 3, 4, 5)


def add_destination_command(
    commands: Commands,
    name: str,
    run: Run,
    text: str,
    description: str,
    exit_codes: str | None = None,
    *,
    run_several: RunSeveral | None = None,
    has_config: bool = False,
    has_settings: bool = False,
    has_names: bool = False,
) -> argparse.ArgumentParser:
    """Add a command with the arguments that name a server and a destination.

    Args:
        text: the command's line in `logicalrep --help`.
        description, exit_codes: the first and the last paragraph of the command's help.
        run_several: for the databases of a file; by default one database after another.
        has_config: whether the command has the options of `replicate`, including `--config`.
        has_settings: whether the command reads the settings by table of `--config`.
        has_names: whether to add `--slot` and `--publication`, which are also options of `replicate`.
    """
    parser = commands.add_parser(
        name,
        help=text,
        # The formatter that preserves the lines of the exit codes does not wrap the description.
        description=textwrap.fill(description, 100) if exit_codes else description,
        epilog=exit_codes,
        formatter_class=argparse.RawDescriptionHelpFormatter if exit_codes else argparse.HelpFormatter,
    )
    several = run_several or functools.partial(run_in_sequence, run)
    # `label` is the database's name if the command runs for several databases.
    parser.set_defaults(run=functools.partial(_run_for_file, run, several), label=None, has_options=has_config)
    add_server(parser)
    parser.add_argument(
        "--to",
        metavar="DESTINATION",
        help="the destination of the tables: a folder or the URI of an object store",
    )
    parser.add_argument(
        "--storage-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the object store, in addition to its environment variables; may be repeated",
    )
    parser.add_argument(
        "--catalog",
        metavar="URI",
        help="the catalog of Iceberg tables: sqlite:///FILE, postgresql://…, https://… or glue://REGION; or of Delta "
        "tables: unity+https://HOST/CATALOG",
    )
    parser.add_argument(
        "--catalog-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of pyiceberg for the catalog, in addition to pyiceberg's file and environment variables, or "
        "Unity Catalog's token; may be repeated",
    )
    if not has_config:
        file_help = "the file of replicate: its databases, instead of --dsn and --to; settings by table are "
        file_help += "required if columns are masked" if has_settings else "ignored"
        parser.add_argument("--config", metavar="FILE", help=file_help)
    if has_names:
        for name in _NAMES:
            parser.add_argument(
                f"--{name}",
                metavar="NAME",
                help=f"the name of the {name}, if replicate runs with this option or the destination has moved",
            )
    parser.add_argument("--database", metavar="NAME", help="use only this database of the file")
    return parser


def _run_for_file(run: Run, several: RunSeveral, options: argparse.Namespace) -> int:
    sections = _sections_of(options)
    if not sections:
        if options.database is not None:
            raise ArgumentsError("--database needs a file with 'databases': add --config")
        if options.to is None:
            raise ArgumentsError("name the destination with --to, or a file with 'databases' with --config")
        return run(options)
    if duplicate_flags := [flag for name, flag in _DATABASE_ARGUMENTS.items() if getattr(options, name) is not None]:
        raise ArgumentsError(f"{', '.join(duplicate_flags)}: {options.config} sets this for each database")
    hide_secrets(options)
    if options.database is None:
        return several(options, sections)
    for section in sections:
        if section.name == options.database:
            return run(with_section(options, section))
    raise ArgumentsError(f"{options.config} has no database {options.database}, only {_names(sections)}")


def _sections_of(options: argparse.Namespace) -> Sequence[DatabaseSection]:
    if options.config is None:
        return []
    # Imported here, because it needs the YAML library.
    from logicalrep.pipeline.config.databases import read_databases

    return read_databases(Path(options.config))


def with_section(
    options: argparse.Namespace, section: DatabaseSection, *, label: str | None = None
) -> argparse.Namespace:
    own_options = copy.copy(options)
    for name in _DATABASE_ARGUMENTS:
        setattr(own_options, name, getattr(section, name))
    for name, text in section.options.items():
        if options.has_options or name in _SHARED_OPTIONS:
            setattr(own_options, name, text)
    if section.catalog is not None:
        own_options.catalog = section.catalog
    own_options.catalog_option = [*options.catalog_option, *map("=".join, section.catalog_options.items())]
    own_options.storage_option = [*options.storage_option, *map("=".join, section.storage_options.items())]
    own_options.section, own_options.config, own_options.label = section, section.tables, label
    return own_options


def run_in_sequence(run: Run, options: argparse.Namespace, sections: Sequence[DatabaseSection]) -> int:
    """Run a command for each database of a file, also after errors; return the most severe exit code."""
    codes = []
    for section in sections:
        if not getattr(options, "json", False):
            say(f"{section.name}, at {section.to}:")
        codes.append(run_command(run, with_section(options, section, label=section.name), label=section.name))
    return worst_exit_code(codes)


def with_database_label(content: Mapping[str, Any], label: str | None) -> Mapping[str, Any]:
    return content if label is None else {"database": label, **content}


def refuse_several(options: argparse.Namespace, sections: Sequence[DatabaseSection]) -> int:
    raise ArgumentsError(f"select a database with --database: {options.config} has {_names(sections)}")


def worst_exit_code(codes: Sequence[int]) -> int:
    """Return the most severe of several exit codes: 1, 2, 3, 4, 5, then 0."""
    return next((code for code in _CODES_BY_SEVERITY if code in codes), 0 if not any(codes) else 1)


def _names(sections: Sequence[DatabaseSection]) -> str:
    return ", ".join(section.name for section in sections)
