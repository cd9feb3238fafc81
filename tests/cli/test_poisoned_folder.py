"""Programs that commands start take no module from the current folder, which another user may have filled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MODULES = ("argparse", "json", "logicalrep", "logicalrep_runtime", "logicalrep_protocol", "numpy", "pickle", "socket")
_TAKEN = "import sys; open({marker!r}, 'a').write(__name__ + chr(10)); sys.exit('a module of the current folder')\n"
_ENGINE = """
from logicalrep.pipeline.engines.local import LocalEngine
with LocalEngine(1) as engine:
    assert engine.run(len, ["a", "bc"], 1 << 30) == [1, 2]
"""
_SPARK = """
from logicalrep.pipeline.engines.spark.local import LOCAL, SETTINGS, start_apart
start_apart(LOCAL, SETTINGS).sparkContext.parallelize(["a", "bc"]).map(len).collect()
"""
_DATABASE = """
import os, threading
from logicalrep.cli.databases.lines import DatabaseLines
from logicalrep.cli.databases.processes import DatabaseProcess, SharedParts
from logicalrep.pipeline.engines.spark.shared import ServedSpark
stop, lines = threading.Event(), DatabaseLines(None)
parts = SharedParts(lines=lines, spark=ServedSpark(1), stop=stop, environment=dict(os.environ), is_once=True)
process = DatabaseProcess("shop", "lake", ["--version"], parts)
process.run()
assert process.exit_code == 0, process.exit_code
"""


class Folder:
    """A current folder whose modules have the names of others, and note when they are imported."""

    def __init__(self, path: Path) -> None:
        self.path, self._marker = path / "current", path / "marker"
        self.path.mkdir()
        for name in MODULES:
            (self.path / f"{name}.py").write_text(_TAKEN.format(marker=str(self._marker)))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder; fail if a module of the folder was imported."""
        command = [sys.executable, "-P", *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        done = subprocess.run(
            command,
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        assert not self._marker.exists(), (self._marker.read_text(), done.stderr)
        return done


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    "secret",
    [
        ["--dsn", "host=/nonexistent password=secret"],
        ["--dsn", "host=/nonexistent", "--storage-option", "aws_region=x"],
    ],
    ids=["password", "storage option"],
)
def test_a_command_that_hides_its_secrets(folder: Folder, secret: list[str]) -> None:
    done = folder.run("-m", "logicalrep.cli.main", "status", *secret, "--to", "lake")
    assert "[DESTINATION_EMPTY]" in done.stderr
    assert "secret" not in done.stderr.partition("warning")[0]


def test_the_process_of_a_database(folder: Folder) -> None:
    done = folder.run("-c", _DATABASE)
    assert done.returncode == 0, done.stderr


def test_the_processes_of_the_local_engine(folder: Folder) -> None:
    done = folder.run("-c", _ENGINE)
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_the_workers_of_spark(folder: Folder) -> None:
    done = folder.run("-c", _SPARK)
    assert done.returncode == 0, done.stderr
