"""The tutorial's commands do what it shows, one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.documents import examples
from tests.postgres.servers import Database

_PAGE = "docs/tutorial.md"


def test_the_tutorial(db18: Database, tmp_path: Path) -> None:
    programs = [Path(sys.executable).parent, db18.server.installation.bin]
    library = db18.server.installation.folder / "lib"
    environment = os.environ | {
        "DSN": db18.dsn,
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "LD_LIBRARY_PATH": str(library),
    }

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first, altering, killing, verifying, dropping = (f"set -e\n{text}" for text in examples(_PAGE, "sh"))
    server, reading, again = examples(_PAGE, "python")
    compile(server, "server.py", "exec")
    shown = examples(_PAGE, "text")
    run("bash", "-c", first)
    assert run(sys.executable, "-c", reading) == shown[0]
    run("bash", "-c", altering)
    assert run(sys.executable, "-c", f"import polars\n{again}") == shown[1]
    run("bash", "-c", killing)
    assert run("bash", "-c", verifying) == shown[2]
    run("bash", "-c", dropping)
    assert not (tmp_path / "lake/public").exists()
    assert db18.value("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0
