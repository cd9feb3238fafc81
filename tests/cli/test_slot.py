"""`logicalrep slot`: what it prints, what it leaves at the server, and what it refuses."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from logicalrep.cli.main import main
from logicalrep.cli.server_options import server_of
from tests.waiting import eventually

pytest.importorskip("psycopg")
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import Connection
from logicalrep.postgres.sessions.walsender import Walsender
from tests.postgres.servers import Database


def test_a_slot_from_its_making_to_its_end(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    def run(action: str, *arguments: str) -> str:
        assert main(["slot", action, *arguments, "--dsn", db.dsn]) == 0
        return capsys.readouterr().out

    def refused(action: str, *arguments: str) -> str:
        assert main(["slot", action, *arguments, "--dsn", db.dsn]) == 1
        return capsys.readouterr().err

    assert refused("drop", "plain") == "error: [SLOT_MISSING] replication slot 'plain' does not exist\n"
    assert run("create", "plain").startswith("created the replication slot plain at ")
    assert "[SLOT_EXISTS]" in refused("create", "plain")
    assert "[OPTION_INVALID]" in refused("create", "With-Capitals")
    if db.major >= 17:
        run("create", "kept", "--failover", "--two-phase")
        slots = db.rows("SELECT plugin, two_phase, failover FROM pg_replication_slots WHERE slot_name = 'kept'")
        assert slots == [("pgoutput", True, True)]
    else:
        assert "[SERVER_LACKS_OPTION]" in refused("create", "kept", "--failover")
    with db.writer() as other, other.transaction():
        other.execute("CREATE TABLE t (id int)")
        status = json.loads(run("status", "--json", "plain"))
        assert "process" in status["oldest_transaction"]
    db.execute("INSERT INTO t SELECT generate_series(1, 20000)")
    status = json.loads(run("status", "--json", "plain"))
    columns = "plugin, database, active_pid, confirmed_flush_lsn::text, restart_lsn::text, wal_status, safe_wal_size"
    (row,) = db.rows(f"SELECT {columns} FROM pg_replication_slots WHERE slot_name = 'plain'")
    names = ("plugin", "database", "active_pid", "confirmed_flush_lsn", "restart_lsn", "wal_status", "safe_wal_size")
    assert tuple(status[name] for name in names) == row
    assert 1_000_000 < status["lag_bytes"] <= status["retained_bytes"]
    assert (status["lost"], status["oldest_transaction"]) == (None, None)
    text = run("status", "plain")
    assert "safe_wal_size             without bound" in text
    assert "two_phase                 no" in text

    half = str(db.value(f"SELECT '{status['confirmed_flush_lsn']}'::pg_lsn + 500000"))
    assert f"was at {status['confirmed_flush_lsn']}, is now at" in run("advance", "plain", "--upto", half)
    moved = json.loads(run("status", "--json", "plain"))
    assert 0 < moved["lag_bytes"] < status["lag_bytes"]
    run("advance", "plain")
    db.execute("CREATE PUBLICATION p FOR ALL TABLES")
    with Walsender(db.settings, "plain", PluginOptions(publication_names=("p",), proto_version=1)):
        eventually(lambda: json.loads(run("status", "--json", "plain"))["active_pid"] is not None)
        for action in ("drop", "advance"):
            message = refused(action, "plain")
            assert "[SLOT_IN_USE] replication slot 'plain' is in use by process" in message
            assert message.count("\n") == 1
    eventually(lambda: json.loads(run("status", "--json", "plain"))["active_pid"] is None)
    assert run("drop", "plain") == "dropped the replication slot plain\n"
    assert db.value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'plain'") == 0


def test_the_slot_of_a_standby_is_left_alone(db18: Database, capsys: pytest.CaptureFixture[str]) -> None:
    db18.execute("SELECT pg_create_physical_replication_slot('standby_of_mine')", "CREATE ROLE nobody_here LOGIN")
    try:
        for action in ("drop", "advance", "status"):
            assert main(["slot", action, "standby_of_mine", "--dsn", db18.dsn]) == 1
            assert "[SLOT_UNUSABLE] replication slot 'standby_of_mine' is a physical slot" in capsys.readouterr().err
        weak = db18.server.dsn_as("nobody_here", db18.name)
        for action in ("drop", "create"):
            assert main(["slot", action, "mine", "--dsn", weak]) == 1
            assert "[ROLE_CANNOT_REPLICATE]" in capsys.readouterr().err
    finally:
        db18.execute("SELECT pg_drop_replication_slot('standby_of_mine')", "DROP ROLE nobody_here")


def test_sessions_are_named_after_their_command() -> None:
    given: dict[str, Any] = {"dsn": "dbname=shop", "dsn_file": None, "password_command": None, "section": None}
    given |= {"storage_option": [], "catalog": None, "catalog_option": []}
    settings = server_of(argparse.Namespace(command="verify", **given))
    assert "fallback_application_name='logicalrep verify'" in repr(settings)


def test_an_error_of_the_server_is_one_line(
    db18: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason that nobody foresaw comes with the server's words, and without a traceback."""

    def refused(connection: Connection, name: str, **options: bool) -> None:
        connection.execute("DO $$ BEGIN RAISE 'not today' USING DETAIL = 'one line', HINT = 'another'; END $$")

    monkeypatch.setattr("logicalrep.postgres.slots.creating.create_slot", refused)
    assert main(["slot", "create", "s", "--dsn", db18.dsn]) == 1
    message = capsys.readouterr().err
    assert message.startswith("error: [SERVER_ERROR] not today DETAIL: one line HINT: another")
    assert message.count("\n") == 1
