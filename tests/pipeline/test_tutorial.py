"""The commands of the tutorial and of the README do what they show, one after the other."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.pipeline.engines.engine import SequentialEngine
from tests.documents import example, examples
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
    server, reading, second_reading = examples(_PAGE, "python")
    compile(server, "server.py", "exec")
    shown = examples(_PAGE, "text")
    run("bash", "-c", first)
    assert run(sys.executable, "-c", reading) == shown[0]
    run("bash", "-c", altering)
    assert run(sys.executable, "-c", f"import polars\n{second_reading}") == shown[1]
    run("bash", "-c", killing)
    assert run("bash", "-c", verifying) == shown[2]
    run("bash", "-c", dropping)
    assert not (tmp_path / "lake/public").exists()
    assert db18.value("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0


def test_the_first_tables_of_the_readme(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The tasks run in this process in place of others.
    monkeypatch.setattr("logicalrep.pipeline.run.run.start_engine", lambda *_: nullcontext(SequentialEngine()))
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text, price numeric(8, 2))",
        "INSERT INTO orders VALUES (1, 'Ada', 12.50), (2, 'Ben', 3.99), (3, 'Ada', 7.50)",
    )
    of_page = "postgresql://replicator@db/shop"
    environment, install, *commands, reading = example("README.md", "logicalrep replicate").splitlines()
    assert environment.startswith("python3 -m venv ")
    assert install.startswith("pip install ")
    for command in commands:
        assert of_page in command
        name, *arguments = shlex.split(command, comments=True)
        assert name == "logicalrep"
        assert main([db18.dsn if argument == of_page else argument for argument in arguments]) == 0
    python, option, program = shlex.split(reading)
    assert (python, option) == ("python", "-c")
    exec(program, {})
    (shown,) = examples("README.md", "text")
    assert capsys.readouterr().out == shown
    db18.execute("INSERT INTO orders VALUES (4, 'Cy', 1.25)")
    (replicating,) = examples("docs/how-to/replicate.md", "python")
    assert of_page in replicating
    exec(replicating.replace(of_page, db18.dsn), {})
    capsys.readouterr()
    exec(program, {})
    assert "│ 4   ┆ Cy       ┆ 1.25         │" in capsys.readouterr().out
