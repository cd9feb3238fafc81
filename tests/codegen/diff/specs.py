"""Specs that a test writes: the small one of cases.yaml, the real one, both with edits, and git repositories of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from codegen.model.reader import load
from tests.conftest import ROOT

SPEC = ROOT / "spec"
PROTOCOLS = load(SPEC)

DATA: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "cases.yaml").read_text(encoding="utf-8"))

Edits = dict[str, list[tuple[str, str]]]
"""By file, `logicalrep/update.yaml` for example: words and what stands in their place."""


def write_edited(folder: Path, edits: Edits) -> Path:
    """A copy of the real spec in a new folder, with each of the words replaced wherever they stand in their file."""
    shutil.copytree(SPEC, folder)
    for file, replacements in edits.items():
        path = folder / file
        text = path.read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text, f"{file} has no {old!r}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    return folder


def write_small(folder: Path, edit: str = "", without: str = "-") -> Path:
    """The small spec in a new folder, edited as cases.yaml says, without the protocol of a folder."""
    spec: dict[str, str] = DATA["spec"]
    files = {name: text for name, text in spec.items() if not name.startswith(f"{without}/")}
    for place in reversed(edit.split("@@\n") if edit else []):
        lines = [line or " " for line in place.splitlines()]
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in kind) for kind in (" -", " +"))
        (name,) = (name for name, text in spec.items() if text.count(old) == 1)
        start = spec[name].index(old)  # the last place comes first, so that those before it are where they were
        files[name] = files[name][:start] + new + files[name][start + len(old) :]
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


class Repository:
    """A git repository in a folder of its own."""

    def __init__(self, folder: Path, environment: pytest.MonkeyPatch) -> None:
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            environment.delenv(name, raising=False)
        for role in ("AUTHOR", "COMMITTER"):
            environment.setenv(f"GIT_{role}_NAME", "Nobody")
            environment.setenv(f"GIT_{role}_EMAIL", "nobody@example.org")
            environment.setenv(f"GIT_{role}_DATE", "2024-01-01T00:00:00Z")
        environment.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        environment.setenv("GIT_CONFIG_NOSYSTEM", "1")
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """What a git command prints."""
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, spec: Path | None) -> str:
        """Commit a spec as spec/, or none, together with what else is there; its revision."""
        shutil.rmtree(self.folder / "spec", ignore_errors=True)
        if spec is not None:
            shutil.copytree(spec, self.folder / "spec")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A spec")
        return self.git("rev-parse", "HEAD")
