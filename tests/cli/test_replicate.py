"""The command `replicate` as a person sees it: what it prints, its exit codes, and where its secrets are not."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pipeline.comparison import find_differences
from tests.waiting import eventually

pytest.importorskip("psycopg")
from logicalrep.cli.main import main
from tests.cli.commands import COMMAND, run_replicate
from tests.postgres.servers import Database


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--to", "x"], 2, "name the server with --dsn or --dsn-file"),
        (["--dsn", "dbname=x"], 2, "--to"),
        (["--dsn", "dbname=x", "--to", "x", "--tables", "a.b.c"], 2, "schema.table is expected"),
        (["--dsn", "dbname=x", "--to", "x", "--every", "-1"], 2, "[OPTION_INVALID] option 'every'"),
        (["--dsn", "dbname=x", "--to", "x", "--storage-option", "a"], 2, "write NAME=VALUE"),
        (["--dsn", "no such=parameter", "--to", "x"], 1, "[CONNECTION_SETTINGS]"),
        (
            ["--dsn", "dbname=x", "--to", "nope://x"],
            1,
            "[DESTINATION_INVALID] nope://x is not a destination for tables",
        ),
    ],
)
def test_invalid_arguments(arguments: list[str], code: int, text: str) -> None:
    done = run_replicate(*arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert text in done.stderr


def test_a_new_place_a_second_process_and_a_clean_end(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'one')")
    db18.execute("CREATE TABLE bare (v text)", 'CREATE TABLE "; DROP TABLE t; --" (id int PRIMARY KEY)')
    lake = tmp_path / "lake"
    log = tmp_path / "log"
    with log.open("w") as written:
        arguments = ["--dsn", db18.dsn, "--to", str(lake), "--every", "0", "--engine", "local"]
        first = subprocess.Popen([*COMMAND, *arguments], stderr=written, cwd=ROOT)
    try:
        eventually(lambda: (lake / "public" / "t" / "_delta_log").exists())
        db18.execute("INSERT INTO t VALUES (2, 'two')", 'INSERT INTO "; DROP TABLE t; --" VALUES (1)')
        slot = str(db18.value("SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'logicalrep_lake%'"))
        other = run_replicate("--dsn", db18.dsn, "--to", str(tmp_path / "other"), "--slot", slot, "--once")
        assert (other.returncode, other.stderr.splitlines()[-1][:20]) == (1, "error: [SLOT_EXISTS]")
        eventually(lambda: find_differences(db18.dsn, str(lake), ["public.t", "public.; DROP TABLE t; --"]) == {})
    finally:
        first.send_signal(signal.SIGINT)
        code = first.wait(60)
    text = log.read_text()
    assert code == 130, text
    assert "warning: public.bare is not replicated" in text
    assert text.count("is not replicated") == 1
    assert "ALTER TABLE public.bare REPLICA IDENTITY FULL" in text
    assert "public.t: loaded 1 rows" in text
    assert "WARN" not in text
    assert "incubator" not in text
    db18.execute("INSERT INTO t VALUES (3, 'three')")
    verbose = run_replicate("-v", "--once", "--engine", "local", "--dsn", db18.dsn, "--to", str(lake))
    assert verbose.returncode == 0, verbose.stderr
    lines = [
        re.fullmatch(
            r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ (INFO|WARNING) logicalrep\.(batch|replicate): (.*)", line
        )
        for line in verbose.stderr.splitlines()
    ]
    assert all(lines), verbose.stderr
    assert [
        line[3]
        for line in lines
        if line and line[3].startswith(f"batch slot={slot} mode=walsender changes=1 tables=1 ")
    ]
    assert [line[1] for line in lines if line and "public.bare is not replicated" in line[3]] == ["WARNING"]


def test_a_table_that_is_stopped_and_a_pause_have_exit_codes_of_their_own(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db18.execute("CREATE TABLE good (id int PRIMARY KEY)", "CREATE TABLE bad (id int PRIMARY KEY, at date)")
    db18.execute("INSERT INTO good VALUES (1)", "INSERT INTO bad VALUES (1, 'infinity')")
    arguments = ["--dsn", db18.dsn, "--to", str(tmp_path / "lake")]
    once = [*arguments, "--once", "--engine", "local"]
    stopped = run_replicate(*once)
    last = stopped.stderr.splitlines()[-1]
    assert (stopped.returncode, last[:28]) == (4, "[TABLES_STOPPED] public.bad:"), stopped.stderr
    assert "run logicalrep resync public.bad with the same --dsn and --to" in last
    assert find_differences(db18.dsn, str(tmp_path / "lake"), ["public.good"]) == {}
    # Nor is a destination with a stopped table ready.
    assert main(["check", *arguments]) == 3
    assert capsys.readouterr().out.startswith("[TABLES_STOPPED] public.bad is stopped: [COLUMN_VALUE] ")
    assert main(["pause", *arguments]) == 0
    paused = run_replicate(*once)
    assert (paused.returncode, paused.stderr.splitlines()[-1][:20]) == (3, "[DESTINATION_PAUSED]"), paused.stderr
    assert main(["resume", *arguments]) == 0
    db18.execute("DROP TABLE bad", "INSERT INTO good VALUES (2)")
    done = run_replicate(*once)
    assert done.returncode == 0, done.stderr
    assert find_differences(db18.dsn, str(tmp_path / "lake"), ["public.good"]) == {}


def test_a_role_that_may_not_publish_gets_the_statements(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db18.execute("DROP ROLE IF EXISTS not_owner", "CREATE ROLE not_owner LOGIN REPLICATION")
    done = run_replicate("--dsn", f"{db18.dsn} user=not_owner", "--to", str(tmp_path / "lake"), "--once")
    assert done.returncode == 3, done.stderr
    findings, _, script = done.stderr.partition("\n\n")
    begun, step, *codes = [line.partition("]")[0] for line in findings.splitlines()]
    assert " starts, engine local: " in begun
    assert step.endswith("Z checking the server, the role and the destination")
    assert codes == ["[TABLE_NOT_READABLE", "[PUBLICATION_NEEDED"]
    assert 'FOR TABLE ONLY "public"."t" WITH (publish_via_partition_root = true);\n' in script
    db18.execute(*(line for line in script.splitlines() if line.endswith(";") and line[:4] not in ("BEGI", "COMM")))
    done = run_replicate(
        "--dsn", f"{db18.dsn} user=not_owner", "--to", str(tmp_path / "lake"), "--once", "--engine", "local"
    )
    assert done.returncode == 0, done.stderr


def test_secrets_are_neither_on_the_command_line_nor_in_what_is_written(db18: Database, tmp_path: Path) -> None:
    log = tmp_path / "log"
    secrets = ("s3cretword", "k3yword", "c4talogword", "t0kenword")
    # A server that does not answer, so that the command is still there when it is looked at.
    with socket.create_server(("127.0.0.1", 0)) as silent, log.open("w") as output:
        dsn = f"{db18.dsn} password=s3cretword host=127.0.0.1 port={silent.getsockname()[1]} connect_timeout=600"
        arguments = ["--dsn", dsn, "--to", str(tmp_path / "lake"), "--storage-option", "aws_secret_access_key=k3yword"]
        arguments += ["--format", "iceberg", "--catalog", "postgresql://lake:c4talogword@192.0.2.2/tables"]
        arguments += ["--catalog-option", "token=t0kenword"]
        process = subprocess.Popen([*COMMAND, *arguments], stderr=output, cwd=ROOT)

        def shown(command_line: Path) -> list[str]:
            return [secret for secret in secrets if secret.encode() in command_line.read_bytes()]

        try:
            command_line = Path(f"/proc/{process.pid}/cmdline")
            warned = "warning: the password in --dsn was visible on the command line"
            eventually(lambda: warned in log.read_text() and log.read_text().endswith("\n"))
            # The command starts itself again after the warnings; its command line is empty in between.
            eventually(lambda: b"iceberg" in command_line.read_bytes() and not shown(command_line))
        finally:
            process.kill()
            process.wait()
    log_text = log.read_text()
    assert log_text.count(warned) == 1
    assert "PGPASSWORD, ~/.pgpass or the file of --dsn-file" in log_text
    assert "warning: the secret in --catalog was visible on the command line" in log_text
    written = log_text + "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert [secret for secret in secrets if secret in written] == []
