"""The arguments that name a server and a destination; secrets do not stay on the command line."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from logicalrep.cli.terminal import say
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import without_secrets

if TYPE_CHECKING:
    from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
    from logicalrep.pipeline.storage.storage import Storage
    from logicalrep.postgres.connection import ConnectionSettings

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_DSN, _STORAGE = "LOGICALREP_DSN", "LOGICALREP_STORAGE_OPTIONS"
_CATALOG, _CATALOG_OPTIONS = "LOGICALREP_CATALOG", "LOGICALREP_CATALOG_OPTIONS"
"""The environment variables that replace secrets on the command line."""

_PASSWORD = re.compile(r"password|://[^/@]*:", re.IGNORECASE)
_PASSWORD_OF_CATALOG = re.compile(r"password|://[^/@]*:[^/@]*@", re.IGNORECASE)
_READABLE = (
    "warning: the password in --dsn was visible on the command line for a moment, and stays in the shell's history: "
    "set it in PGPASSWORD, ~/.pgpass or the file of --dsn-file"
)
_READABLE_OF_CATALOG = (
    "warning: the secret in --catalog was visible on the command line for a moment, and stays in the shell's history: "
    "set a password in ~/.pgpass, or LOGICALREP_CATALOG instead of --catalog"
)
_HIDDEN = ("--dsn", "--storage-option", "--catalog", "--catalog-option")


class ArgumentsError(LogicalRepError, ValueError):
    code = "USAGE"


def add_server(parser: argparse.ArgumentParser) -> None:
    # `section` is the database of a file with several databases.
    parser.set_defaults(storage_option=[], catalog=None, catalog_option=[], section=None)
    server = parser.add_mutually_exclusive_group()
    server.add_argument(
        "--dsn",
        metavar="DSN",
        help="the server: a URI or connection string of libpq; set the password in PGPASSWORD, ~/.pgpass or --dsn-file",
    )
    parser.add_argument(
        "--password-command",
        metavar="COMMAND",
        help="a shell command that prints the password; it runs at each connect, for passwords that expire",
    )
    server.add_argument("--dsn-file", metavar="FILE", type=Path, help="a file with the DSN, which may have a password")


def server_of(options: argparse.Namespace) -> ConnectionSettings:
    """Return the server of the arguments, after `hide_secrets`."""
    hide_secrets(options)
    # Imported here, because commands without a server do not need it.
    from logicalrep.postgres.connection import ConnectionSettings

    # pg_stat_activity shows the command of a session.
    settings = ConnectionSettings(_dsn_of(options), fallback_application_name=f"logicalrep {options.command}")
    settings = settings.with_password_command(options.password_command)
    if options.command not in ("replicate", "verify"):
        # These two print the warnings themselves.
        for warning in settings.warnings:
            say(f"warning: {warning}", sys.stderr)
    return settings


def server_and_storage(options: argparse.Namespace) -> tuple[ConnectionSettings, Storage]:
    """Return the server and the destination of the arguments, after `hide_secrets`."""
    connection = server_of(options)
    from logicalrep.pipeline.engines.own_process import leave_out_pandas
    from logicalrep.pipeline.storage.storage import Storage

    leave_out_pandas()
    return connection, Storage(options.to, _storage_options_of(options))


def catalog_of(options: argparse.Namespace) -> tuple[str | None, Mapping[str, str]]:
    """Return the URI of the catalog, None without a catalog, and the catalog's options."""
    return options.catalog or os.environ.get(_CATALOG), _catalog_options_of(options)


def catalog_settings_of(options: argparse.Namespace) -> CatalogSettings | None:
    from logicalrep.pipeline.formats.catalog_settings import CatalogSettings

    return CatalogSettings.of(*catalog_of(options))


def non_negative_number(text: str) -> float:
    """Return an argument's number. Raises ValueError if it is negative or not finite."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError
    return number


def _dsn_of(options: argparse.Namespace) -> str:
    if options.dsn is not None:
        return str(options.dsn)
    if options.dsn_file is not None:
        try:
            return options.dsn_file.read_text("utf-8").strip()  # type: ignore[no-any-return]
        except OSError as error:
            raise ArgumentsError(f"--dsn-file {options.dsn_file}: {error.strerror}") from None
    dsn = os.environ.get(_DSN)
    if dsn is None:
        raise ArgumentsError("name the server with --dsn or --dsn-file")
    return dsn


def _storage_options_of(options: argparse.Namespace) -> Mapping[str, str]:
    return _pairs("--storage-option", options.storage_option, _STORAGE)


def _catalog_options_of(options: argparse.Namespace) -> Mapping[str, str]:
    return _pairs("--catalog-option", options.catalog_option, _CATALOG_OPTIONS)


def _pairs(flag: str, texts: Iterable[str], variable: str) -> Mapping[str, str]:
    values: dict[str, str] = json.loads(os.environ.get(variable, "{}"))
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentsError(f"{flag} {name}: write NAME=VALUE")
        values[name] = value
    return values


def hide_secrets(options: argparse.Namespace) -> None:
    """Restart the program with its secrets in the environment; call it first.

    Every user of the machine can read the command line, but only this user the environment.
    """
    has_password = options.dsn is not None and _PASSWORD.search(options.dsn) is not None
    has_catalog = options.catalog is not None and (
        _PASSWORD_OF_CATALOG.search(options.catalog) is not None or without_secrets(options.catalog) != options.catalog
    )
    is_shown = options.storage_option or options.catalog_option or has_password or has_catalog
    if options.section is not None or not is_shown:
        return
    storage, (catalog, catalog_options) = _storage_options_of(options), catalog_of(options)
    arguments, is_value = [], False
    for argument in sys.argv[1:]:
        if not is_value and not argument.startswith(tuple(f"{flag}=" for flag in _HIDDEN)):
            is_value = argument in _HIDDEN
            if not is_value:
                arguments.append(argument)
        else:
            is_value = False
    environment = os.environ | {_STORAGE: json.dumps(storage), _CATALOG_OPTIONS: json.dumps(catalog_options)}
    if options.dsn is not None:
        environment[_DSN] = options.dsn
    if catalog is not None:
        environment[_CATALOG] = catalog
    if options.dsn_file is not None:
        environment.pop(_DSN, None)
    if has_password:
        print(_READABLE, file=sys.stderr)
    if has_catalog:
        print(_READABLE_OF_CATALOG, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without -P, modules in the current folder would hide installed modules.
    os.execve(sys.executable, [sys.executable, "-P", "-m", "logicalrep.cli.main", *arguments], environment)
