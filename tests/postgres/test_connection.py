"""Connections: libpq's parameters, and passwords that are never shown."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from logicalrep.postgres.connection import (
    PARAMETERS,
    ConnectionSettings,
    ConnectionSettingsError,
    error_of,
    settings_from,
    without_tls,
)
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database


def test_a_password_is_not_shown() -> None:
    settings = ConnectionSettings("host=db password=geheim", sslpassword="auch-geheim")
    assert "geheim" not in repr(settings)
    assert "geheim" not in repr(ConnectionSettings("postgresql://someone:geheim@db/shop"))


def test_a_dsn_that_cannot_be_read_is_not_quoted() -> None:
    with pytest.raises(ConnectionSettingsError) as caught:
        ConnectionSettings("host=db pass word=geheim")
    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_all_parameters_of_libpq_but_those_that_are_decided_here() -> None:
    assert {"host", "passfile", "sslmode", "sslsni", "requirepeer", "sslcrldir"} <= set(PARAMETERS)
    assert not {"client_encoding", "fallback_application_name", "replication"} & set(PARAMETERS)


@pytest.mark.parametrize(
    ("host", "address", "is_encrypted", "warns"),
    [
        ("/run/postgresql", "", False, False),
        ("localhost", "127.0.0.1", False, False),
        ("localhost", "::1", False, False),
        ("db", "192.0.2.7", True, False),
        ("db", "192.0.2.7", False, True),
        ("db", "2001:db8::1", False, True),
    ],
)
def test_another_machine_without_tls_gives_a_warning(host: str, address: str, is_encrypted: bool, warns: bool) -> None:
    info = SimpleNamespace(host=host, hostaddr=address)
    connection: Any = SimpleNamespace(info=info, pgconn=SimpleNamespace(ssl_in_use=is_encrypted))
    warning = without_tls(connection)
    assert (warning is not None) == warns
    assert warning is None or "the server db is reached without TLS" in warning


def test_a_real_connection_to_this_machine_needs_no_tls(db18: Database) -> None:
    assert without_tls(db18.connection) is None


def test_the_environment_of_libpq(db18: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=5MB -c DateStyle=German")
    monkeypatch.setenv("PGAPPNAME", "somebody")
    with db18.settings.connect() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
        assert connection.execute("SHOW application_name").fetchone() == ("somebody",)
        # The settings for parsing values stay.
        assert connection.execute("SHOW DateStyle").fetchone() == ("ISO, DMY",)


def test_what_a_role_is_set_to_changes_no_value_and_ends_nothing(db: Database) -> None:
    role = f"set_to_{db.name}"
    db.execute(f"CREATE ROLE {role} LOGIN")
    timeouts = ["idle_session_timeout", "idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout"]
    timeouts += ["transaction_timeout"] if db.major >= 17 else []
    try:
        for name in timeouts:
            db.execute(f"ALTER ROLE {role} SET {name} = '500ms'")
        db.execute(f"ALTER ROLE {role} SET quote_all_identifiers = on")
        settings = ConnectionSettings(db.dsn, user=role)
        with settings.connect() as connection:
            for name in timeouts:
                assert connection.execute(f"SHOW {name}").fetchone() == ("0",)
            assert connection.execute("SELECT 'pg_class'::regclass::text").fetchone() == ("pg_class",)
    finally:
        db.execute(f"DROP ROLE {role}")


def test_functions_of_others_are_not_called(db: Database) -> None:
    """A function in public matches better than the server's own, and would run with the reader's rights."""
    db.execute(
        "CREATE FUNCTION public.format(text, name, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    needs = Needs(slot="s", publications=("p",), create_slot=True, tables=(TableName("public", "t"),))
    with db.settings.connect() as connection:
        assert check(connection, needs) == []
    with db.writer() as connection, pytest.raises(psycopg.Error, match="called"):
        check(connection, needs)


def test_a_host_that_is_gone_is_noticed() -> None:
    shown = repr(ConnectionSettings("host=db tcp_user_timeout=5000"))
    assert "keepalives_idle=30 keepalives_interval=10 keepalives_count=3" in shown
    assert "tcp_user_timeout=5000" in shown


def test_a_connection_that_breaks_is_an_operational_error(db18: Database) -> None:
    with db18.settings.connect() as connection:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as shared:
            shared.shutdown(socket.SHUT_RDWR)
        error = error_of(connection.pgconn.exec_(b"SELECT 1"))
    assert isinstance(error, psycopg.OperationalError)
    assert "connection" in str(error)


def test_an_error_has_no_password(db18: Database) -> None:
    settings = ConnectionSettings(f"host={db18.server.folder} user=geheim password=geheim dbname=nowhere")
    with pytest.raises(psycopg.OperationalError) as caught:
        settings.connect()
    assert "geheim" not in str(caught.value)


def test_parameters_stand_over_the_dsn(db18: Database) -> None:
    settings = settings_from({"dsn": db18.server.dsn, "dbname": db18.name, "slot": "none of libpq's"})
    with settings.connect() as connection:
        assert connection.info.dbname == db18.name
        assert connection.execute("SHOW TimeZone").fetchone() == ("UTC",)
        assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)
