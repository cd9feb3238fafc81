"""Signals end `replicate` at any point of its work; it resumes after its Java has been killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.waiting import eventually

pytest.importorskip("psycopg")
pytest.importorskip("pyspark")
from tests.cli.commands import processes, send_signal, start_command
from tests.pipeline.comparison import find_differences
from tests.postgres.servers import Database


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_a_killed_java_and_then_a_signal_to_all_processes(
    db18: Database, tmp_path: Path, number: signal.Signals
) -> None:
    # More than little work, so that Java is there once the table is.
    rows = "SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 30000) AS i"
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", f"INSERT INTO t {rows}")
    lake, log = tmp_path / "lake", tmp_path / "log"
    with start_command(db18, lake, log, "--engine", "spark") as command:

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
    assert text.count("its Java has ended: replicate restarts it") == 1
    assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_takes_long_ends_at_once(db18: Database, tmp_path: Path, number: signal.Signals) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    java, log = tmp_path / "java/bin/java", tmp_path / "log"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 1000\n")
    java.chmod(0o755)
    arguments = ["--engine", "spark"]
    with start_command(db18, tmp_path / "lake", log, *arguments, JAVA_HOME=str(tmp_path / "java")) as command:
        eventually((tmp_path / "begun").exists)
        os.kill(command.pid, number)
        assert command.wait(20) == 130, log.read_text()
    assert "Traceback" not in log.read_text()
