"""docs/how-to/arrow.md's examples that need no server, run as they stand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.documents import example


@pytest.mark.slow
def test_a_capture_in_polars() -> None:
    command = [sys.executable, "-c", example("docs/how-to/arrow.md", "import polars")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "truncate" in done.stdout
