"""The command and a git repository as fixtures."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pytest

from codegen.diff import add_arguments, run
from tests.codegen.diff.specs import Repository


@dataclass(frozen=True)
class Outcome:
    """The result of a run of the command."""

    code: int
    out: str
    err: str


class Diff:
    """Runs the command and keeps what it prints."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: object) -> Outcome:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        code = run(parser.parse_args([str(argument) for argument in arguments]))
        out, err = self._capture.readouterr()
        return Outcome(code, out, err)


@pytest.fixture
def diff(capsys: pytest.CaptureFixture[str]) -> Diff:
    """Runs `python -m codegen diff` with some arguments."""
    return Diff(capsys)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A git repository without commits: the test's current folder."""
    repository = Repository(tmp_path / "repository", monkeypatch)
    monkeypatch.chdir(repository.folder)
    return repository
