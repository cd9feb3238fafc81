"""Connections to a server, by libpq's parameters; the password is never shown. Needs psycopg 3."""

from __future__ import annotations

import ipaddress
import math
import os
import subprocess
from collections.abc import Mapping
from copy import copy
from itertools import zip_longest
from typing import Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, PGconn, Ping
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

from logicalrep.postgres.session_settings import PIN_WHERE_THERE, session_options
from logicalrep.postgres.silence import PATIENCE, PATIENCE_OF_SECOND, Backend, WatchedConnection
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import without_secrets

# A host that is gone sends nothing. The connection is given up within a minute, which is as long as a server waits.
_TCP = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}


# libpq marks its parameters for developers (D) and those to hide (*).
_LIBPQ = {option.keyword.decode(): option.dispchar for option in Conninfo.get_defaults() if option.dispchar != b"D"}

PARAMETERS = tuple(name for name in _LIBPQ if name not in ("client_encoding", "fallback_application_name"))
"""The libpq parameters that may be given one by one: all but those that this module sets."""


class ConnectionSettingsError(LogicalRepError, ValueError):
    """Parameters that libpq does not accept. The message contains no part of a password."""

    code = "CONNECTION_SETTINGS"


class ConnectError(LogicalRepError, psycopg.OperationalError):
    """A failure to connect: no server answered, or the server refused. The text quotes the server's reason."""

    code = "SERVER_AWAY"
    patience = math.inf
    """The longest time for retries, in seconds."""

    def after(self, seconds: float) -> Self:
        """Return the same error with the time in seconds that retries took."""
        return type(self)(f"{self.description}; tried for {seconds:.1f} s", code=self.code) if self.patience else self


PATIENCE_OF_FIRST = 10.0
"""The longest time for retries where a server answers and refuses a first connection, in seconds."""

_PATIENCE_OF_COMMAND = 30.0

# The connection strings that have worked in this process, so that a refusal is not the parameters' fault.
_right: set[str] = set()


class ConnectionSettings:
    """The server, user and password of a connection: a connection string, overriding parameters, libpq's environment.

    Its `repr` leaves the password out.

    Example:
        >>> ConnectionSettings("host=localhost user=postgres", dbname="shop")
        ConnectionSettings('fallback_application_name=logicalrep connect_timeout=10 ...')
    """

    def __init__(self, dsn: str = "", **parameters: str) -> None:
        """Take a connection string or URI, and parameters by libpq's names, which override it.

        Raises:
            ConnectionSettingsError: libpq does not accept a parameter.
        """
        try:
            merged = conninfo_to_dict(dsn, **parameters)
        except psycopg.ProgrammingError:
            # libpq quotes what it could not read, and that may be a part of the password.
            reason = "dsn is neither a URI nor a connection string of libpq, such as host=localhost dbname=shop"
            if parameters:
                reason += f"; or one of these is not a parameter of libpq: {', '.join(sorted(parameters))}"
            raise ConnectionSettingsError(reason) from None
        self.patience = PATIENCE
        """The longest time without a word of the server, in seconds; then the server is asked, or given up."""
        self.password_command: str | None = None
        """A command of the shell that prints the password, run at each connect; None for no such command."""
        self._parameters: dict[str, str] = {"fallback_application_name": "logicalrep"}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            self._parameters["connect_timeout"] = "10"
        self._parameters |= {name: value for name, value in _TCP.items() if name in _LIBPQ}
        self._parameters |= {name: str(value) for name, value in merged.items() if value is not None}

    def with_patience(self, seconds: float) -> Self:
        """Return the same settings with another `patience`."""
        made = copy(self)
        made.patience = seconds
        return made

    def with_password_command(self, command: str | None) -> Self:
        """Return the same settings with a command of the shell that prints the password, which is run at each connect.

        Example:
            >>> ConnectionSettings("host=db.example.org").with_password_command("aws rds generate-db-auth-token …")
            ConnectionSettings('…')
        """
        made = copy(self)
        made.password_command = command
        return made

    @property
    def has_password(self) -> bool:
        """Whether a password is among the parameters."""
        return "password" in self._parameters

    @property
    def secrets(self) -> list[str]:
        """The names of the parameters that are secrets, such as `password` and `sslpassword`."""
        return [name for name in self._parameters if _is_hidden(name)]

    @property
    def warnings(self) -> list[str]:
        """The risks of connecting with these settings, to be told before a password is sent.

        Example:
            >>> ConnectionSettings("host=db.example.org sslmode=require").warnings
            ['the server db.example.org is reached with sslmode=require, …']
        """
        effective = self._effective
        mode = effective.get("sslmode", "prefer")
        if (
            mode == "verify-full"
            or effective.get("sslrootcert") == "system"
            or effective.get("gssencmode") == "require"
        ):
            return []
        hosts = zip_longest(
            effective.get("host", "").split(","), effective.get("hostaddr", "").split(","), fillvalue=""
        )
        others = [host or address for host, address in hosts if not _is_this_machine(host, address)]
        if not others:
            return []
        effect = "its certificate may be another machine's, which would get the password and the rows"
        if mode not in ("require", "verify-ca"):
            effect = "the password and the rows may be sent in clear, or to another machine"
        return [
            f"the server {', '.join(others)} is reached with sslmode={mode}: {effect}. Add sslmode=verify-full to the "
            "DSN, and where passwords are SCRAM's channel_binding=require and require_auth=scram-sha-256"
        ]

    @property
    def server(self) -> str:
        """The server's address as libpq has it, `host:port`; two of them may be one server.

        Example:
            >>> ConnectionSettings("host=db.example.org dbname=shop").server
            'db.example.org:5432'
        """
        effective = self._effective
        return f"{effective.get('host') or effective.get('hostaddr', '')}:{effective.get('port', '')}"

    @property
    def _effective(self) -> dict[str, str]:
        """The parameters with those of the environment and libpq's defaults."""
        defaults = {
            each.keyword.decode(): each.val.decode() for each in Conninfo.get_defaults() if each.val is not None
        }
        return defaults | self._parameters

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._parameters.items() if not _is_hidden(name)}
        return f"ConnectionSettings({make_conninfo('', **shown)!r})"

    def connect(self, *, replication: bool = False, is_second: bool = False) -> WatchedConnection:
        """Open a connection in autocommit mode; with `replication` it also accepts the commands of a walsender.

        The session has an empty search_path and no row security: names need a schema, and a query that a policy would
        filter is an error. With `is_second`, it asks the server for another session, which is silent.

        Raises:
            ConnectError: no connection was made; the text leaves the password out.
            SilentServerError: the server has stopped answering.
        """
        parameters = dict(self._parameters)
        parameters["options"] = session_options(parameters.get("options", os.environ.get("PGOPTIONS", "")))
        if replication:
            parameters["replication"] = "database"
        if self.password_command is not None:
            parameters["password"] = _password_of(self.password_command)
        conninfo = make_conninfo("", **parameters)
        try:
            connection = WatchedConnection.connect(conninfo, autocommit=True, cursor_factory=psycopg.ClientCursor)
        except psycopg.OperationalError as error:
            raise self._not_connected(error, conninfo, parameters.get("password", "")) from None
        _right.add(make_conninfo("", **self._parameters))
        connection.patience = min(self.patience, PATIENCE_OF_SECOND) if is_second else self.patience
        connection.password_command = self.password_command
        if not is_second:
            connection.second = _connect_second
        try:
            connection.execute(PIN_WHERE_THERE)
            connection.backend = Backend.query(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _not_connected(self, error: psycopg.OperationalError, conninfo: str, password: str) -> ConnectError:
        """Return the error with its patience, from libpq's status alone: the server's texts may be in any language."""
        secrets = (value for name, value in self._parameters.items() if _is_hidden(name))
        words = " ".join(without_secrets(str(error), (password, *map(str, secrets))).split())
        pgconn = error.pgconn
        if pgconn is not None and pgconn.needs_password:
            found = ConnectError(
                "the server requires a password and none is given: put it into ~/.pgpass, PGPASSWORD or the file of "
                "--dsn-file, or name a --password-command; in Spark's source set the option `password`. Spark's "
                f"executors need it too ({words})",
                code="PASSWORD_MISSING",
            )
            found.patience = 0
        elif pgconn is not None and pgconn.used_password:
            # The password is most likely wrong, so it is not sent again; a command may print another one.
            found = ConnectError(words, code="CONNECTION_REFUSED")
            found.patience = math.inf if self._chooses_servers else PATIENCE_OF_FIRST if self.password_command else 0
        elif isinstance(error, psycopg.errors.ConnectionTimeout) or not _answers(conninfo):
            found = ConnectError(words)
        else:
            found = ConnectError(words, code="CONNECTION_REFUSED")
            found.patience = math.inf if self._chooses_servers else PATIENCE_OF_FIRST
        if make_conninfo("", **self._parameters) in _right:
            found.patience = math.inf
        return found

    @property
    def _chooses_servers(self) -> bool:
        """Whether libpq selects servers by their role, so that retries wait for a standby's promotion."""
        chosen = self._parameters.get("target_session_attrs", os.environ.get("PGTARGETSESSIONATTRS", "any"))
        return bool(chosen != "any")


def _password_of(command: str) -> str:
    """Return what a command prints. Raises ConnectError if it fails; the text has nothing of what it printed."""
    try:
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, timeout=_PATIENCE_OF_COMMAND, check=True)
        return done.stdout.decode().removesuffix("\n")
    except subprocess.CalledProcessError as error:
        why = f"exit code {error.returncode}"
    except subprocess.TimeoutExpired:
        why = f"no end after {_PATIENCE_OF_COMMAND:.0f} s"
    except UnicodeDecodeError:
        why = "what it prints is no text"
    found = ConnectError(f"--password-command gives no password: {why}", code="PASSWORD_COMMAND")
    found.patience = PATIENCE_OF_FIRST
    raise found


def _answers(conninfo: str) -> bool:
    """Return whether a server is running, and neither starting nor stopping."""
    # The timeout is short because libpq holds the interpreter's lock meanwhile.
    return PGconn.ping(make_conninfo(conninfo, connect_timeout=2).encode()) == Ping.OK


def is_ending(connection: psycopg.Connection[TupleRow]) -> bool:
    """Return whether the server of a connection refuses new ones, as it is stopping; it may be starting as well."""
    settings = settings_of(connection)
    return PGconn.ping(make_conninfo("", **settings._parameters | {"connect_timeout": "2"}).encode()) == Ping.REJECT


def error_of(result: PGresult) -> psycopg.Error:
    """Return a failed result as an exception: the server's error, or OperationalError if the connection broke."""
    error = psycopg.errors.error_from_result(result, encoding="utf-8")
    return error if error.sqlstate is not None else psycopg.OperationalError(str(error))


def settings_from(options: Mapping[str, str]) -> ConnectionSettings:
    """Return the settings from `dsn` and libpq's parameters in a mapping; other keys are ignored."""
    parameters = {name: options[name] for name in PARAMETERS if name in options}
    return ConnectionSettings(options.get("dsn", ""), **parameters)


def settings_of(connection: psycopg.Connection[TupleRow]) -> ConnectionSettings:
    """Return settings that reach the same server as a connection, even if its settings list several hosts."""
    info = connection.info
    parameters = info.get_parameters() | {"host": info.host, "port": str(info.port), "password": info.password}
    if "hostaddr" in parameters:
        parameters["hostaddr"] = info.hostaddr
    settings = ConnectionSettings(**{name: value for name, value in parameters.items() if value})
    settings.password_command = getattr(connection, "password_command", None)
    return settings.with_patience(getattr(connection, "patience", PATIENCE))


def _is_this_machine(host: str, address: str) -> bool:
    """Return whether a connection stays on this machine: a Unix socket's host is its folder."""
    host = address or host
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _connect_second(connection: psycopg.Connection[TupleRow]) -> WatchedConnection:
    return settings_of(connection).connect(is_second=True)


def _is_hidden(name: str) -> bool:
    return _LIBPQ.get(name, b"*") == b"*"
