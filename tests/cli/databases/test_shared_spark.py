"""The processes of several databases share one Spark, and resume after its Java has been killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.commands import LARGE_TABLE
from tests.cli.databases.several import are_equal, following, write_file
from tests.postgres.servers import Database
from tests.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def javas(parent: subprocess.Popen[str]) -> list[int]:
    """Return the Javas of the command and of its processes."""
    listing = subprocess.run(["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()[1:]]
    ours = {parent.pid}
    for _ in range(3):
        ours |= {int(pid) for pid, ppid, _ in rows if int(ppid) in ours}
    return [int(pid) for pid, _, arguments in rows if int(pid) in ours and "org.apache.spark.deploy" in arguments]


def test_one_java_does_the_work_of_all_and_another_one_follows_it(
    databases: Mapping[str, Database], tmp_path: Path
) -> None:
    pytest.importorskip("grpc")
    for db in databases.values():
        db.execute("DROP TABLE t", *(text.replace("large", "t") for text in LARGE_TABLE))
    path = write_file(tmp_path, databases)
    log = path.with_suffix(".log")
    with following(path, "--engine", "spark") as parent:
        eventually(lambda: are_equal(tmp_path, databases) or parent.poll() is not None)
        assert parent.poll() is None, log.read_text()
        [java] = javas(parent)
        os.kill(java, signal.SIGKILL)
        for db in databases.values():
            db.execute("UPDATE t SET v = v || 'x'")
        eventually(lambda: are_equal(tmp_path, databases) or parent.poll() is not None)
        [other] = javas(parent)
        assert other != java
        parent.send_signal(signal.SIGINT)
        assert parent.wait(120) == 130
        eventually(lambda: not javas(parent))
    text = log.read_text()
    for name in databases:
        assert f"{name}: " in text
    assert text.count("its Java has ended: replicate restarts it") == len(databases)
    assert "the process ended" not in text
    assert "Traceback" not in text
