"""The memory of the command's processes: it does not grow with the number of tables of a batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil")

from bench.tables.usage import Usage
from tests.pipeline.comparison import find_differences
from tests.postgres.servers import Database

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

MOST = 700
"""The most MiB of all processes without Java; pages that several have count once."""


def _peak(db: Database, to: Path) -> int:
    """Run the command until all is up to date; return the most MiB of its processes."""
    command = [sys.executable, "-m", "logicalrep.cli.main", "replicate", "--dsn", db.dsn, "--to", str(to), "--once"]
    process = subprocess.Popen([*command, "--engine", "local"])
    with Usage(process.pid, os.getpid()) as usage:
        assert process.wait(600) == 0
    return usage.used.peak["in all"]


def test_a_batch_over_two_hundred_tables_has_the_memory_of_one_over_fifty(db18: Database, tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(200)]
    rows = "SELECT i, md5(i::text), repeat(md5(i::text), 10) FROM generate_series(1, 2000) AS i"
    for name in names:
        db18.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text, w text)", f"INSERT INTO {name} {rows}")
    _peak(db18, tmp_path)
    peaks = []
    for count in (50, 200):
        with db18.connection.transaction():
            for name in names[:count]:
                db18.execute(f"UPDATE {name} SET v = 'after {count}' WHERE id % 2 = 0")
        peaks.append(_peak(db18, tmp_path))
    assert max(peaks) < MOST, peaks
    assert peaks[1] < 1.5 * peaks[0], peaks
    assert find_differences(db18.dsn, str(tmp_path), [f"public.{name}" for name in names[::40]]) == {}
