"""Ctrl-C while Spark works: a program and a cell of a notebook show their own lines alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import PATHS

# A function of PySpark calls the object's hash, which stands for a wait that is interrupted.
_PROGRAM = """
from pyspark.core.rdd import portable_hash
from logicalrep.spark.quiet import install_error_hooks

class Interrupted:
    def __hash__(self):
        raise KeyboardInterrupt

install_error_hooks()
portable_hash(Interrupted())
"""
_SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell(sys.argv[1])
"""


def run(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"PYTHONPATH": PATHS, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    return done.stdout + done.stderr


def test_an_interrupted_program_shows_its_own_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    assert run(program).splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{program}", line 10, in <module>',
        "    portable_hash(Interrupted())",
        "KeyboardInterrupt: interrupted while Spark worked",
    ]


def test_an_interrupted_cell_shows_its_own_line() -> None:
    pytest.importorskip("IPython")
    text = run("-c", _SHELL, _PROGRAM)
    assert text.rstrip().endswith("KeyboardInterrupt: interrupted while Spark worked"), text
    assert "portable_hash(Interrupted())" in text
    assert "rdd.py" not in text
