"""`python -m codegen fuzz` on the present generator: a few specs, and in the thorough tests many."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(["--specs", "2", "--seed", "quick"], id="two specs"),
        pytest.param(["--seconds", "120", "--seed", "thorough"], id="two minutes", marks=pytest.mark.thorough),
    ],
)
def test_the_search_finds_no_fault(limit: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "codegen", "fuzz", *limit], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert result.stdout.endswith("; 0 faults\n")
