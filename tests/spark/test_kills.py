"""Kills without warning, in the middle of batches: afterwards every row is there exactly once.

Each mode has three kills here, and 20 with LOGICALREP_SOAK=1 (`make soak`): of Spark, its Python workers, PostgreSQL.
`make test` runs the kills of `tests/pipeline/test_kills.py` alone, as a kill costs a start of Spark.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.rows import run
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from tests.postgres.servers import Database
from tests.spark.streams import EACH_MODE
from tests.spark.workload import feed_rows, prepare, truth
from tests.spark.writer import ROOT, Writer
from tests.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.spark, pytest.mark.thorough]

KILLS = 20 if os.environ.get("LOGICALREP_SOAK") else 3
LIMIT = "max_changes_per_batch"


class Program:
    """The stream in processes of its own."""

    def __init__(self, db: Database, folder: Path, mode: str) -> None:
        self._folder = folder
        self._options = {
            "dsn": db.dsn,
            "slot": "spark",
            "publication": "p",
            "mode": mode,
            LIMIT: "500",
            "poll_interval": "0.02",
        }
        if mode == "walsender":
            self._options["spool"] = str(folder / "spool")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, available_now: bool = False) -> None:
        # The rest is read in one batch at the end, as Spark 4.0 and 4.1 have only one batch for this trigger.
        options = {name: value for name, value in self._options.items() if not available_now or name != LIMIT}
        settings = {"options": options, "folder": str(self._folder), "available_now": available_now}
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.program", json.dumps(settings)], cwd=ROOT, stdout=log, stderr=log
        )

    def finish(self) -> None:
        """Read everything available, and end."""
        self.start(available_now=True)
        try:
            eventually(lambda: not self.is_alive(), seconds=300)
            assert self._process is not None
            assert self._process.returncode == 0, self.log()
        finally:
            self.kill()

    def batches(self) -> int:
        """Return the number of committed batches: the last batch's number, since Spark retains the files of only 100."""
        names = (path.name for path in (self._folder / "checkpoint" / "commits").glob("*"))
        return max((int(name) for name in names if name.isdigit()), default=-1) + 1

    def kill(self) -> None:
        """Kill everything at once: the driver, the JVM, the Python workers."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill_workers(self) -> None:
        """Kill Spark's Python processes, including the process that plans the batches."""
        assert self._process is not None
        listing = subprocess.run(["ps", "-eo", "pid,pgid,args"], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines()[1:]:
            pid, group, arguments = line.split(None, 2)
            if int(group) == self._process.pid and "-m pyspark" in arguments:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-3000:]


@pytest.mark.parametrize("mode", EACH_MODE)
def test_kills_lose_nothing_and_double_nothing(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark", "twin")
    chance = random.Random(1)
    program = Program(db18, tmp_path, mode)
    writer = Writer(db18)
    try:
        for number in range(KILLS):
            if not program.is_alive():
                program.start()
            batch_count = program.batches()
            deadline = time.monotonic() + 240
            while program.batches() < batch_count + 2 and program.is_alive():
                assert time.monotonic() < deadline, program.log()
                time.sleep(0.05)
            time.sleep(chance.random() * 0.7)
            if number % 3 == 0:
                program.kill()
            elif number % 3 == 1:
                db18.server.stop("immediate")
                db18.server.start()
                db18.reconnect()
            else:
                program.kill_workers()
                time.sleep(2)
                program.kill()
    finally:
        writer.stop()
        program.kill()
    db18.reconnect()
    for (gid,) in db18.rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
        db18.execute(f"ROLLBACK PREPARED '{gid}'")
    run(db18.connection, 10_000, 6)
    expected = truth(db18, "twin")
    # Spark 4.0 and 4.1 end with the killed batch, if there is one.
    for _ in range(1 if HAS_ADMISSION_CONTROL else 2):
        program.finish()
    rows = feed_rows(spark.read.parquet(str(tmp_path / "out")))
    assert len({(row["commit_lsn"], row["ordinal"]) for row in rows}) == len(rows)
    assert rows == expected
    assert writer.seeds >= KILLS
