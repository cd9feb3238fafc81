"""Connections: what libpq takes, and passwords that are never shown."""

from __future__ import annotations

import psycopg
import pytest

from logicalrep_pipeline.connection import PARAMETERS, ConnectionSettings, ConnectionSettingsError, settings_from
from tests.server.servers import Database

pytestmark = pytest.mark.postgres


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


def test_the_environment_of_libpq(db18: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=5MB -c DateStyle=German")
    monkeypatch.setenv("PGAPPNAME", "somebody")
    with db18.settings.connect() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
        assert connection.execute("SHOW application_name").fetchone() == ("somebody",)
        # What values are read by is not to be changed.
        assert connection.execute("SHOW DateStyle").fetchone() == ("ISO, DMY",)


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
