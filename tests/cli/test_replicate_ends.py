"""The command `replicate` is ended by signals, wherever it is, and goes on after its Java has been killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.waiting import eventually

pytest.importorskip("psycopg")
pytest.importorskip("pyspark")
from tests.cli.test_replicate import COMMAND
from tests.pipeline.comparison import find_differences
from tests.postgres.servers import Database


@contextmanager
def start_command(
    db: Database, lake: Path, log: Path, *options: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the command, in a session and a group of its own."""
    with log.open("ab") as written:
        process = subprocess.Popen(
            [*COMMAND, "--dsn", db.dsn, "--to", str(lake), "--every", "0", *options],
            stderr=written,
            stdout=written,
            cwd=ROOT,
            start_new_session=True,
            env=os.environ | environment,
        )
    try:
        yield process
    finally:
        for pid in processes(process):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def processes(command: subprocess.Popen[bytes], program: str = "") -> list[int]:
    """Return the processes of the command's session whose command line has a text."""
    listing = subprocess.run(["ps", "-wweo", "pid,sid,stat,args"], capture_output=True, text=True, check=True).stdout
    found = [line.split(None, 3) for line in listing.splitlines()[1:]]
    return [
        int(pid)
        for pid, session, state, arguments in found
        if int(session) == command.pid and program in arguments and not state.startswith("Z")
    ]


def send_signal(command: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """Send a signal to all processes of the command, as a service's manager does, and return the exit code."""
    for pid in processes(command):
        if pid != command.pid:
            # One of Spark's workers may have ended meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    os.kill(command.pid, number)
    return command.wait(60)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_its_java_is_killed_and_then_all_its_processes_are_told_to_end(
    db18: Database, tmp_path: Path, number: signal.Signals
) -> None:
    # More than little work, so that Java is there once the table is.
    rows = "SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 30000) AS i"
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", f"INSERT INTO t {rows}")
    lake, log = tmp_path / "lake", tmp_path / "log"
    with start_command(db18, lake, log) as command:

        def has_all() -> bool:
            assert command.poll() is None, log.read_text()
            return (
                any(lake.glob("public/t/_delta_log/*.json"))
                and find_differences(db18.dsn, str(lake), ["public.t"]) == {}
            )

        eventually(has_all, seconds=240)
        (java,) = processes(command, "org.apache.spark.deploy.SparkSubmit")
        os.kill(java, signal.SIGKILL)
        db18.execute("UPDATE t SET v = v || 'x'")
        eventually(has_all, seconds=240)
        assert send_signal(command, number) == 130, log.read_text()
        eventually(lambda: not processes(command))
    text = log.read_text()
    assert text.count("its Java has ended; it is started again") == 1
    assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_takes_long_ends_at_once(db18: Database, tmp_path: Path, number: signal.Signals) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    java, log = tmp_path / "java/bin/java", tmp_path / "log"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 1000\n")
    java.chmod(0o755)
    with start_command(db18, tmp_path / "lake", log, JAVA_HOME=str(tmp_path / "java")) as command:
        eventually((tmp_path / "begun").exists)
        os.kill(command.pid, number)
        assert command.wait(20) == 130, log.read_text()
    assert "Traceback" not in log.read_text()
