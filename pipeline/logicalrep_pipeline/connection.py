"""How to reach a server: libpq's parameters, with a password that is never shown. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

# So that values come as the types' readers expect them, and the same wherever a server stands.
_SESSION_SETTINGS = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "lock_timeout": "0",
}


class ConnectionSettingsError(ValueError):
    """Parameters that libpq does not take; the message has nothing of a password in it."""


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
            names = ", ".join(sorted(parameters)) or "none"
            raise ConnectionSettingsError(
                f"dsn is no connection string or URI of libpq, or one of these parameters is none of its: {names}"
            ) from None
        self._parameters: dict[str, Any] = {"application_name": "logicalrep", "connect_timeout": "10"} | {
            name: value for name, value in merged.items() if value is not None
        }

    @property
    def database(self) -> str | None:
        """The database, where it is named."""
        return self._parameters.get("dbname")

    @property
    def has_password(self) -> bool:
        """Whether a password is among the parameters."""
        return "password" in self._parameters

    def __repr__(self) -> str:
        shown = {name: value for name, value in self._parameters.items() if "password" not in name}
        return f"ConnectionSettings({make_conninfo('', **shown)!r})"

    def connect(self, *, replication: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection in autocommit; with `replication` one that takes the commands of a walsender too.

        Raises psycopg.OperationalError, without the password.
        """
        parameters = dict(self._parameters)
        settings = " ".join(f"-c {name}={value}" for name, value in _SESSION_SETTINGS.items())
        parameters["options"] = f"{parameters.get('options', '')} {settings}".strip()
        if replication:
            parameters["replication"] = "database"
        try:
            return psycopg.connect(
                make_conninfo("", **parameters), autocommit=True, cursor_factory=psycopg.ClientCursor
            )
        except psycopg.OperationalError as error:
            raise psycopg.OperationalError(self.without_password(str(error))) from None

    def without_password(self, text: str) -> str:
        """A text in which the password, if it has one, is replaced by stars."""
        for name, value in self._parameters.items():
            if "password" in name and value:
                text = text.replace(str(value), "***")
        return text


def settings_from(options: Mapping[str, str]) -> ConnectionSettings:
    """Settings from a mapping that has `dsn`, and libpq's parameters by their names, among other things."""
    parameters = {name: options[name] for name in PARAMETERS if name in options}
    return ConnectionSettings(options.get("dsn", ""), **parameters)


PARAMETERS = (
    "service",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "passfile",
    "require_auth",
    "channel_binding",
    "connect_timeout",
    "application_name",
    "options",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslmode",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslrootcert",
    "sslcrl",
    "krbsrvname",
    "gssencmode",
    "target_session_attrs",
    "load_balance_hosts",
)
"""The parameters of libpq that may be given one by one."""
