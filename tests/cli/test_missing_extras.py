"""Commands whose libraries are not installed: one sentence says what to install, and the help needs none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
sys.modules[sys.argv.pop(1)] = None
from logicalrep.cli.main import main
sys.exit(main())
"""
SERVER_AND_PLACE = ["--dsn", "host=127.0.0.1 port=1", "--to", "/nonexistent/lake"]


def run(missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, missing, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(("command", "missing"), [("replicate", "psycopg"), ("verify", "pyarrow")])
def test_a_missing_library_is_one_sentence(command: str, missing: str) -> None:
    done = run(missing, command, *SERVER_AND_PLACE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: {missing} is not installed: run pip install 'logicalrep[local]', or 'logicalrep[replicate]' with Spark"
    )
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_the_help_needs_no_library() -> None:
    done = run("pyarrow", "verify", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "exit codes:" in done.stdout


def test_patience_is_no_negative_number() -> None:
    done = run("none", "verify", *SERVER_AND_PLACE, "--patience", "-1")
    assert done.returncode == 2
    assert "--patience" in done.stderr


def test_a_shortened_option_is_refused() -> None:
    """Its secret would stay on the command line, from which secrets are taken by the options' names."""
    done = run("none", "status", *SERVER_AND_PLACE, "--storage", "name=value")
    assert done.returncode == 2
    assert "unrecognized arguments: --storage" in done.stderr
