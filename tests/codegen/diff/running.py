"""The command as a test runs it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pytest

from codegen.diff import add_arguments, run
from tests.conftest import ROOT

RULES = Path(__file__).parent / "rules"
"""One folder for each rule, with a spec before and after and what is printed."""

SPEC = ROOT / "spec"


@dataclass(frozen=True)
class Outcome:
    """What a run of the command came to."""

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
