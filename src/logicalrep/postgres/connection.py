"""How to reach a server: libpq's parameters, with a password that is never shown. Needs psycopg 3."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, PGconn, Ping
from psycopg.pq.abc import PGresult

from logicalrep_runtime.errors import LogicalRepError

# So that values come as the types' readers expect them, and the same wherever a server stands; and so that what takes
# its time is not ended.
_SESSION_SETTINGS = {
    "quote_all_identifiers": "off",
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
# Functions that somebody has made in a schema of the path are not to be taken for the server's. Who asks for a path by
# libpq's options has it.
_NO_PATH = "-c search_path="
# Those that only some servers have.
_NEWER_TIMEOUTS = (
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')"
)
# A host that is gone says nothing: within a minute, as long as a server itself waits, the connection is given up.
_TCP = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}


# libpq says what is for its developers (D), and what is to be hidden (*).
_LIBPQ = {option.keyword.decode(): option.dispchar for option in Conninfo.get_defaults() if option.dispchar != b"D"}

PARAMETERS = tuple(name for name in _LIBPQ if name not in ("client_encoding", "fallback_application_name"))
"""The parameters of libpq that may be given one by one: all but what is decided here."""


class ConnectionSettingsError(LogicalRepError, ValueError):
    """Parameters that libpq does not take; the message has nothing of a password in it."""

    code = "CONNECTION_SETTINGS"


class ConnectError(LogicalRepError, psycopg.OperationalError):
    """No connection was made: nobody answered, or the server refused it, in whose words the text says why."""

    code = "SERVER_AWAY"
    patience = math.inf
    """For how many seconds it may be tried again at most."""

    def after(self, seconds: float) -> Self:
        """Return the same error, which says for how long it was tried."""
        return type(self)(f"{self.description}; tried for {seconds:.1f} s", code=self.code) if self.patience else self


_PATIENCE = 10.0
"""For how many seconds a server is asked again that answers and refuses a first connection."""

# The parameters with which a connection was made in this process, so that they can be right.
_right: set[str] = set()


class ConnectionSettings:
    """Where to connect and as whom: a connection string, single parameters over it, and libpq's environment.

    It is shown without the password.
    """

    def __init__(self, dsn: str = "", **parameters: str) -> None:
        """From a connection string or URI, and parameters by libpq's names.

        Raises ConnectionSettingsError for what libpq does not take.
        """
        try:
            merged = conninfo_to_dict(dsn, **parameters)
        except psycopg.ProgrammingError:
            # libpq quotes what it could not read, and that may be a part of the password.
            reason = (
                "dsn is no URI or connection string of libpq, of words like host=localhost with its parameters' names"
            )
            if parameters:
                reason += f"; or one of these is no parameter of libpq: {', '.join(sorted(parameters))}"
            raise ConnectionSettingsError(reason) from None
        self._parameters: dict[str, Any] = {"fallback_application_name": "logicalrep"}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            self._parameters["connect_timeout"] = "10"
        self._parameters |= {name: value for name, value in _TCP.items() if name in _LIBPQ}
        self._parameters |= {name: value for name, value in merged.items() if value is not None}

    @property
    def database(self) -> str | None:
        """The database, where it is named."""
        return self._parameters.get("dbname")

    @property
    def has_password(self) -> bool:
        """Whether a password is among the parameters."""
        return "password" in self._parameters

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._parameters.items() if not _is_hidden(name)}
        return f"ConnectionSettings({make_conninfo('', **shown)!r})"

    def connect(self, *, replication: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection in autocommit; with `replication` one that takes the commands of a walsender too.

        Raises ConnectError, without the password.
        """
        parameters = dict(self._parameters)
        settings = " ".join(f"-c {name}={value}" for name, value in _SESSION_SETTINGS.items())
        given = parameters.get("options", os.environ.get("PGOPTIONS", ""))
        parameters["options"] = f"{_NO_PATH} {given} {settings}"
        if replication:
            parameters["replication"] = "database"
        conninfo = make_conninfo("", **parameters)
        try:
            connection = psycopg.connect(conninfo, autocommit=True, cursor_factory=psycopg.ClientCursor)
        except psycopg.OperationalError as error:
            raise self._not_connected(error, conninfo) from None
        _right.add(make_conninfo("", **self._parameters))
        try:
            connection.execute(_NEWER_TIMEOUTS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _not_connected(self, error: psycopg.OperationalError, conninfo: str) -> ConnectError:
        """Return the error, which says for how long to try again: by what libpq knows, as words are in any language."""
        words = " ".join(self.without_password(str(error)).split())
        pgconn = error.pgconn
        if pgconn is not None and pgconn.needs_password:
            found = ConnectError(
                "the server wants a password and there is none: set the option `password`, or have it in ~/.pgpass or "
                f"the file that PGPASSFILE names, for Spark's executors as well as for its driver ({words})",
                code="PASSWORD_MISSING",
            )
            found.patience = 0
        elif pgconn is not None and pgconn.used_password:
            # Most likely a wrong one, and not to be sent again and again.
            found = ConnectError(words, code="CONNECTION_REFUSED")
            found.patience = math.inf if self._chooses_servers else 0
        elif isinstance(error, psycopg.errors.ConnectionTimeout) or not _answers(conninfo):
            found = ConnectError(words)
        else:
            found = ConnectError(words, code="CONNECTION_REFUSED")
            found.patience = math.inf if self._chooses_servers else _PATIENCE
        if make_conninfo("", **self._parameters) in _right:
            found.patience = math.inf
        return found

    @property
    def _chooses_servers(self) -> bool:
        """Whether libpq leaves out servers of another kind, so that one is waited for that is to take over."""
        chosen = self._parameters.get("target_session_attrs", os.environ.get("PGTARGETSESSIONATTRS", "any"))
        return bool(chosen != "any")

    def without_password(self, text: str) -> str:
        """A text in which the password, if it has one, is replaced by stars."""
        for name, value in self._parameters.items():
            if _is_hidden(name) and value:
                text = text.replace(str(value), "***")
        return text


def _answers(conninfo: str) -> bool:
    """Whether a server is there, and neither starts nor stops."""
    # No longer than needed, as libpq keeps the interpreter for itself meanwhile.
    return PGconn.ping(make_conninfo(conninfo, connect_timeout=2).encode()) == Ping.OK


def error_of(result: PGresult) -> psycopg.Error:
    """The error that a result is: the server's, or OperationalError where the connection broke."""
    error = psycopg.errors.error_from_result(result, encoding="utf-8")
    return error if error.sqlstate is not None else psycopg.OperationalError(str(error))


def settings_from(options: Mapping[str, str]) -> ConnectionSettings:
    """Settings from a mapping that has `dsn`, and libpq's parameters by their names, among other things."""
    parameters = {name: options[name] for name in PARAMETERS if name in options}
    return ConnectionSettings(options.get("dsn", ""), **parameters)


def settings_of(connection: psycopg.Connection[Any]) -> ConnectionSettings:
    """How to reach the server of a connection again: of several hosts, the one that it is to."""
    info = connection.info
    parameters = info.get_parameters() | {"host": info.host, "port": str(info.port), "password": info.password}
    if "hostaddr" in parameters:
        parameters["hostaddr"] = info.hostaddr
    return ConnectionSettings(**{name: value for name, value in parameters.items() if value})


def _is_hidden(name: str) -> bool:
    return _LIBPQ.get(name, b"*") == b"*"
