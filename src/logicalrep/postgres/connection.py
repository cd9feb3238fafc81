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

from logicalrep.postgres.session_settings import PIN_IF_SUPPORTED, session_options
from logicalrep.postgres.silence import PATIENCE, PATIENCE_OF_OBSERVER, Backend, WatchedConnection
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import without_secrets

# An unreachable host sends nothing: TCP ends the connection within a minute, as the server does.
_TCP = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}


# libpq marks its parameters for developers (D) and those to hide (*).
_LIBPQ = {option.keyword.decode(): option.dispchar for option in Conninfo.get_defaults() if option.dispchar != b"D"}

PARAMETERS = tuple(name for name in _LIBPQ if name not in ("client_encoding", "fallback_application_name"))


class ConnectionSettingsError(LogicalRepError, ValueError):
    """libpq does not accept the parameters. The message contains no part of a password."""

    code = "CONNECTION_SETTINGS"


class ConnectError(LogicalRepError, psycopg.OperationalError):
    """No server answered, or the server refused the connection. The text quotes the server's reason."""

    code = "SERVER_AWAY"
    patience = math.inf
    """The longest time for retries, in seconds."""

    def after(self, seconds: float) -> Self:
        """Return the error with the duration of the retries, in seconds."""
        return type(self)(f"{self.description}; tried for {seconds:.1f} s", code=self.code) if self.patience else self


FIRST_CONNECT_PATIENCE = 10.0
"""The longest time for retries if a server refuses the first connection, in seconds."""

_PATIENCE_OF_COMMAND = 30.0

# Connection strings that a server has accepted: a later refusal is not caused by the parameters.
_accepted_conninfos: set[str] = set()


class ConnectionSettings:
    """The parameters of connections to a server: a connection string, overriding parameters, libpq's environment.

    `repr` omits secrets.

    Example:
        >>> ConnectionSettings("host=localhost user=postgres", dbname="shop")
        ConnectionSettings('fallback_application_name=logicalrep connect_timeout=10 ...')
    """

    def __init__(self, dsn: str = "", **parameters: str) -> None:
        """Parse the parameters; nothing connects.

        Args:
            dsn: libpq's connection string or URI.
            parameters: libpq's parameters, which override `dsn`.

        Raises:
            ConnectionSettingsError: libpq does not accept a parameter.
        """
        try:
            merged = conninfo_to_dict(dsn, **parameters)
        except psycopg.ProgrammingError:
            # libpq quotes the invalid text, which may be a part of the password.
            reason = "dsn is neither a URI nor a connection string of libpq, such as host=localhost dbname=shop"
            if parameters:
                reason += f"; or one of these is not a parameter of libpq: {', '.join(sorted(parameters))}"
            raise ConnectionSettingsError(reason) from None
        self.patience = PATIENCE
        """The longest silence of the server in seconds, before another session checks the server."""
        self.password_command: str | None = None
        """A shell command that prints the password, run at each connect; None without a command."""
        self._parameters: dict[str, str] = {"fallback_application_name": "logicalrep"}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            self._parameters["connect_timeout"] = "10"
        self._parameters |= {name: value for name, value in _TCP.items() if name in _LIBPQ}
        self._parameters |= {name: str(value) for name, value in merged.items() if value is not None}

    def with_patience(self, seconds: float) -> Self:
        """Return a copy with another `patience`, in seconds."""
        settings = copy(self)
        settings.patience = seconds
        return settings

    def with_password_command(self, command: str | None) -> Self:
        """Return a copy with a shell command that prints the password; it runs at each connect.

        Example:
            >>> ConnectionSettings("host=db.example.org").with_password_command("aws rds generate-db-auth-token …")
            ConnectionSettings('…')
        """
        settings = copy(self)
        settings.password_command = command
        return settings

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
        """The risks of connecting with these settings, to show before connecting.

        Example:
            >>> ConnectionSettings("host=db.example.org sslmode=require").warnings
            ['the connection to db.example.org has sslmode=require: …']
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
        remote_hosts = [host or address for host, address in hosts if not _is_this_machine(host, address)]
        if not remote_hosts:
            return []
        effect = "its certificate may be another machine's, which would get the password and the rows"
        if mode not in ("require", "verify-ca"):
            effect = "the password and the rows may be sent in clear, or to another machine"
        return [
            f"the connection to {', '.join(remote_hosts)} has sslmode={mode}: {effect}. Add sslmode=verify-full to the "
            "DSN, and for SCRAM passwords channel_binding=require and require_auth=scram-sha-256"
        ]

    @property
    def server(self) -> str:
        """The server's address, `host:port`; one server may have several addresses.

        Example:
            >>> ConnectionSettings("host=db.example.org dbname=shop").server
            'db.example.org:5432'
        """
        effective = self._effective
        return f"{effective.get('host') or effective.get('hostaddr', '')}:{effective.get('port', '')}"

    @property
    def database(self) -> str:
        """The name of the database, by default the user's.

        Example:
            >>> ConnectionSettings("host=db.example.org dbname=shop").database
            'shop'
        """
        return self._effective.get("dbname") or self._effective.get("user", "")

    @property
    def each_server(self) -> list[Self]:
        """Copies of the settings for each of the servers, whatever its role.

        Example:
            >>> [server.server for server in ConnectionSettings("host=a,b port=5432").each_server]
            ['a:5432', 'b:5432']
        """
        effective = self._effective
        names = [name for name in ("host", "hostaddr", "port") if effective.get(name)]
        lists = {name: effective[name].split(",") for name in names}
        copies = []
        for number in range(max([1, *(len(values) for name, values in lists.items() if name != "port")])):
            settings = copy(self)
            # One port counts for all hosts.
            own = {name: values[number if len(values) > 1 else 0] for name, values in lists.items()}
            settings._parameters = self._parameters | own | {"target_session_attrs": "any"}
            copies.append(settings)
        return copies

    @property
    def _effective(self) -> dict[str, str]:
        # Parameters override the environment and libpq's defaults.
        defaults = {
            option.keyword.decode(): option.val.decode() for option in Conninfo.get_defaults() if option.val is not None
        }
        return defaults | self._parameters

    def __repr__(self) -> str:
        parameters = {name: value for name, value in self._parameters.items() if not _is_hidden(name)}
        return f"ConnectionSettings({make_conninfo('', **parameters)!r})"

    def connect(self, *, replication: bool = False, is_observer: bool = False) -> WatchedConnection:
        """Open a connection in autocommit mode.

        The session has an empty search_path and no row security: names need a schema, and a query that a policy would
        filter fails.

        Args:
            replication: whether the connection accepts the commands of a walsender.
            is_observer: whether the session checks another session, which is silent.

        Raises:
            ConnectError: connecting failed; the text omits the password.
            SilentServerError: the server does not answer.
        """
        parameters = dict(self._parameters)
        parameters["options"] = session_options(parameters.get("options", os.environ.get("PGOPTIONS", "")))
        if replication:
            parameters["replication"] = "database"
        if self.password_command is not None:
            parameters["password"] = _run_password_command(self.password_command)
        conninfo = make_conninfo("", **parameters)
        try:
            connection = WatchedConnection.connect(conninfo, autocommit=True, cursor_factory=psycopg.ClientCursor)
        except psycopg.OperationalError as error:
            raise self._connect_error(error, conninfo, parameters.get("password", "")) from None
        _accepted_conninfos.add(make_conninfo("", **self._parameters))
        connection.patience = min(self.patience, PATIENCE_OF_OBSERVER) if is_observer else self.patience
        connection.password_command = self.password_command
        if not is_observer:
            connection.connect_observer = _connect_observer
        try:
            connection.execute(PIN_IF_SUPPORTED)
            connection.backend = Backend.query(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_error(self, error: psycopg.OperationalError, conninfo: str, password: str) -> ConnectError:
        # The patience follows from libpq's status alone: the server's texts may be in any language.
        secrets = (value for name, value in self._parameters.items() if _is_hidden(name))
        server_text = " ".join(without_secrets(str(error), (password, *map(str, secrets))).split())
        pgconn = error.pgconn
        if pgconn is not None and pgconn.needs_password:
            refusal = ConnectError(
                "the server requires a password: set it in ~/.pgpass, PGPASSWORD or the file of --dsn-file, or use "
                "--password-command; for Spark's source set the option `password`. Spark's executors need it too "
                f"({server_text})",
                code="PASSWORD_MISSING",
            )
            refusal.patience = 0
        elif pgconn is not None and pgconn.used_password:
            # The password is probably wrong and is not sent again; a command may print a new password.
            refusal = ConnectError(server_text, code="CONNECTION_REFUSED")
            refusal.patience = (
                math.inf if self._chooses_servers else FIRST_CONNECT_PATIENCE if self.password_command else 0
            )
        elif isinstance(error, psycopg.errors.ConnectionTimeout) or not _is_running(conninfo):
            refusal = ConnectError(server_text)
        else:
            refusal = ConnectError(server_text, code="CONNECTION_REFUSED")
            refusal.patience = math.inf if self._chooses_servers else FIRST_CONNECT_PATIENCE
        if make_conninfo("", **self._parameters) in _accepted_conninfos:
            refusal.patience = math.inf
        return refusal

    @property
    def _chooses_servers(self) -> bool:
        # If libpq selects servers by role, retries wait for a standby's promotion.
        chosen = self._parameters.get("target_session_attrs", os.environ.get("PGTARGETSESSIONATTRS", "any"))
        return bool(chosen != "any")


def _run_password_command(command: str) -> str:
    # Errors must not contain the command's output.
    try:
        process = subprocess.run(command, shell=True, stdout=subprocess.PIPE, timeout=_PATIENCE_OF_COMMAND, check=True)
        return process.stdout.decode().removesuffix("\n")
    except subprocess.CalledProcessError as error:
        reason = f"exit code {error.returncode}"
    except subprocess.TimeoutExpired:
        reason = f"no end after {_PATIENCE_OF_COMMAND:.0f} s"
    except UnicodeDecodeError:
        reason = "its output is not text"
    connect_error = ConnectError(f"--password-command failed: {reason}", code="PASSWORD_COMMAND")
    connect_error.patience = FIRST_CONNECT_PATIENCE
    raise connect_error


def _is_running(conninfo: str) -> bool:
    # A starting or stopping server answers REJECT. The timeout is short because libpq holds the interpreter's lock.
    return PGconn.ping(make_conninfo(conninfo, connect_timeout=2).encode()) == Ping.OK


def is_ending(connection: psycopg.Connection[TupleRow]) -> bool:
    settings = settings_of(connection)
    return PGconn.ping(make_conninfo("", **settings._parameters | {"connect_timeout": "2"}).encode()) == Ping.REJECT


def error_of(result: PGresult) -> psycopg.Error:
    """Return the error of a failed result: the server's error, or OperationalError for a broken connection."""
    error = psycopg.errors.error_from_result(result, encoding="utf-8")
    return error if error.sqlstate is not None else psycopg.OperationalError(str(error))


def settings_from(options: Mapping[str, str]) -> ConnectionSettings:
    parameters = {name: options[name] for name in PARAMETERS if name in options}
    return ConnectionSettings(options.get("dsn", ""), **parameters)


def settings_of(connection: psycopg.Connection[TupleRow]) -> ConnectionSettings:
    """Return the settings of a connection, with only the host that it is connected to."""
    info = connection.info
    parameters = info.get_parameters() | {"host": info.host, "port": str(info.port), "password": info.password}
    if "hostaddr" in parameters:
        parameters["hostaddr"] = info.hostaddr
    settings = ConnectionSettings(**{name: value for name, value in parameters.items() if value})
    settings.password_command = getattr(connection, "password_command", None)
    return settings.with_patience(getattr(connection, "patience", PATIENCE))


def _is_this_machine(host: str, address: str) -> bool:
    # A Unix socket's host is its folder.
    host = address or host
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _connect_observer(connection: psycopg.Connection[TupleRow]) -> WatchedConnection:
    return settings_of(connection).connect(is_observer=True)


def _is_hidden(name: str) -> bool:
    return _LIBPQ.get(name, b"*") == b"*"
