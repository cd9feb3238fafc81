"""The command as a fixture."""

from __future__ import annotations

import pytest

from tests.codegen.diff.running import Diff


@pytest.fixture
def diff(capsys: pytest.CaptureFixture[str]) -> Diff:
    """Runs `python -m codegen diff` with some arguments."""
    return Diff(capsys)
