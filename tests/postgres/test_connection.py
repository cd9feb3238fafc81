"""Connections: libpq's parameters, and passwords that are never shown."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psycopg
import pytest

from logicalrep.cli.main import main
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import (
    PARAMETERS,
    ConnectError,
    ConnectionSettings,
    ConnectionSettingsError,
    error_of,
    settings_from,
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
    ("dsn", "hosts"),
    [
        ("host=/run/postgresql", ""),
        ("host=@abstract", ""),
        ("", ""),
        ("host=localhost", ""),
        ("host=127.0.0.1,::1", ""),
        ("host=db hostaddr=127.0.0.1", ""),
        ("host=db", "db"),
        ("host=localhost hostaddr=192.0.2.7", "localhost"),
        ("hostaddr=2001:db8::1", "2001:db8::1"),
        ("host=/run/postgresql,db,other", "db, other"),
        ("host=db sslmode=verify-full", ""),
        ("host=db sslrootcert=system", ""),
        ("host=db gssencmode=require", ""),
        ("postgresql://user:sesame@db/shop?sslmode=require", "db"),
    ],
)
def test_another_machine_without_verified_tls_gives_a_warning(dsn: str, hosts: str) -> None:
    warnings = ConnectionSettings(dsn).warnings
    assert [f"the connection to {hosts} has sslmode=" in text for text in warnings] == [True] * bool(hosts)
    assert "sesame" not in "".join(warnings)


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca"])
def test_each_mode_below_verify_full_is_warned_of(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", mode)
    (text,) = ConnectionSettings("host=db").warnings
    assert f"sslmode={mode}: " in text
    assert ("may be sent in clear" in text) == (mode in ("disable", "allow", "prefer"))
    assert "sslmode=verify-full" in text
    assert "channel_binding=require and require_auth=scram-sha-256" in text


@pytest.mark.parametrize("command", ["status", "replicate", "verify"])
def test_the_warning_comes_before_anything_is_sent(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A destination that is known, or a connection that is made, would come first otherwise."""
    storage = Storage(str(tmp_path))
    Identity.claim(storage, slot="s", publication="p", system_identifier=1, database="d")
    shown: list[str] = []

    def connect(settings: ConnectionSettings, **options: object) -> None:
        shown.append(capsys.readouterr().err)
        raise ConnectError("away")

    monkeypatch.setattr(ConnectionSettings, "connect", connect)
    monkeypatch.setattr(ConnectError, "patience", 0)
    assert main(
        [command, "--dsn", "host=db.example.org", "--to", str(tmp_path), *(["--once"] * (command == "replicate"))]
    )
    assert "the connection to db.example.org has sslmode=prefer" in shown[0]


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
