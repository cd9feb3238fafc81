"""The commands at the beginning of codegen/README.md print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.documents import examples

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def _command_of(target: str) -> str:
    """Return the first command of a target of the Makefile."""
    (command,) = re.findall(rf"^{target}:.*\n\t(.*)$", MAKEFILE, re.MULTILINE)
    return str(command)


def _run(folder: Path, line: str) -> str:
    """Run a line of the page in a folder; return what it prints."""
    program, *arguments = shlex.split(line)
    if program == "make":
        target, *settings = arguments
        text = _command_of(target).replace("$(BIN)/", "")
        for setting in settings:
            name, _, value = setting.partition("=")
            text = text.replace(f"$({name})", value)
        program, *arguments = text.split()
    assert program == "python"
    paths = os.pathsep.join(str(folder / name) for name in (".", "generated", "src"))
    command = [sys.executable, *arguments]
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    for name in ("spec", "codegen", "generated", "src", "native"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "build"))
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "before")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    edited = tmp_path / "spec" / "logicalrep" / "stream_abort.yaml"
    edited.write_text(edited.read_text("utf-8").replace("      when: parallel\n", "", 1), "utf-8")
    blocks = examples("codegen/README.md", "console")
    assert len(blocks) == 3
    for block in blocks:
        line, _, printed = block.partition("\n")
        assert _run(tmp_path, line.removeprefix("$ ")) == printed
