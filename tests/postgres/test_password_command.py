"""Passwords that expire: a command prints the one of now, at each connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.postgres.connection import ConnectError, ConnectionSettings, settings_of
from logicalrep.postgres.local_server import LocalServer
from tests.postgres.servers import Database, connect_writer, installation

pytestmark = pytest.mark.postgres


@pytest.fixture
def guarded() -> Iterator[Database]:
    """A server that asks the role `reader` for a password."""
    with LocalServer(installation(18), fsync="off") as local, closing(connect_writer(local.dsn)) as connection:
        (local.data / "pg_hba.conf").write_text("local all reader scram-sha-256\nlocal all all trust\n")
        db = Database(local, "postgres", 18, connection)
        db.execute("SELECT pg_reload_conf()", "CREATE ROLE reader LOGIN REPLICATION PASSWORD 'first'")
        yield db


def test_each_connect_has_the_password_of_now(guarded: Database, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    dsn = guarded.server.dsn_as("reader")
    settings = ConnectionSettings(dsn).with_password_command(f"cat '{file}'")
    with settings.connect() as first, settings.connect(replication=True):
        guarded.execute("ALTER ROLE reader PASSWORD 'second'")
        file.write_text("second\n")
        with settings.connect() as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("reader",)
        # A session that asks for another one does not use its own password again.
        with settings_of(first).connect(is_observer=True) as second:
            assert second.execute("SELECT current_user").fetchone() == ("reader",)
    assert "second" not in repr(settings)


def test_a_command_that_fails_or_prints_a_wrong_password(guarded: Database) -> None:
    settings = ConnectionSettings(guarded.server.dsn_as("reader"))
    with pytest.raises(ConnectError, match=r"\[PASSWORD_COMMAND\].*: exit code 3") as failed:
        settings.with_password_command("echo s3cret; exit 3").connect()
    assert "s3cret" not in str(failed.value)
    with pytest.raises(ConnectError, match=r"\[CONNECTION_REFUSED\]") as refused:
        settings.with_password_command("echo s3cret").connect()
    assert "s3cret" not in str(refused.value)
    # A token that is not valid yet may be so in a moment.
    assert refused.value.patience == failed.value.patience > 0


def test_the_commands_take_it(guarded: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guarded.execute("CREATE TABLE t (id int PRIMARY KEY)", "GRANT SELECT ON t TO reader")
    arguments = ["--dsn", guarded.server.dsn_as("reader"), "--to", str(tmp_path), "--password-command", "echo first"]
    assert main(["check", *arguments]) == 3
    assert "[PUBLICATION_NEEDED]" in capsys.readouterr().out
