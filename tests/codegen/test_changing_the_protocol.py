"""docs/how-to/changing-the-protocol.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/how-to/changing-the-protocol.md").read_text("utf-8")
STEPS = dict(re.findall(r"^## (\d)\. .*?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def blocks(step: str, language: str = "") -> list[str]:
    """The code blocks of a step."""
    return re.findall(rf"^```{language}\n(.*?)^```$", STEPS[step], re.MULTILINE | re.DOTALL)


def run(folder: Path, *command: str) -> str:
    """Run a command in a folder; return what it prints."""
    paths = os.pathsep.join(str(folder / name) for name in (".", "generated", "src"))
    # The tests are not copied.
    paths += f"{os.pathsep}{ROOT}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_step(folder: Path, step: str) -> str:
    """Run the command of a step; return what it prints."""
    (command,) = blocks(step)
    program, *arguments = command.split()
    assert program == "python"
    return run(folder, sys.executable, *arguments)


def test_the_page_works(tmp_path: Path) -> None:
    for name in ("spec", "codegen", "generated", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "before")):
        run(tmp_path, "git", *command)
    *additions, message = blocks("2", "yaml")
    folder = tmp_path / "spec" / "logicalrep"
    protocol = (folder / "protocol.yaml").read_text("utf-8")
    keys = re.findall(r"at the end of `(\w+)`", STEPS["2"])
    for key, addition in zip(keys, additions, strict=True):
        protocol, count = re.subn(
            rf"^{key}:\n(?:[ \t#].*\n)*",
            lambda section, more=addition: section[0] + more,  # type: ignore[misc]
            protocol,
            flags=re.MULTILINE,
        )
        assert count == 1, key
    (folder / "protocol.yaml").write_text(protocol, "utf-8")
    (folder / "sequence.yaml").write_text(message, "utf-8")
    output = run_step(tmp_path, "3")
    assert " message-added" in output
    assert "0 wire, 0 api" in output
    assert "v5.py" in run_step(tmp_path, "4")
    (example,) = blocks("4", "python")
    run(tmp_path, sys.executable, "-c", example)
    batch = "from logicalrep_protocol.columnar import Session, decode_batch; import pyarrow as pa\n"
    batch += (
        "found, _ = decode_batch(pa.array([data]), Session(version=5))\nassert found['last_value'].to_pylist() == [42]"
    )
    run(tmp_path, sys.executable, "-c", f"{example}\n{batch}")
