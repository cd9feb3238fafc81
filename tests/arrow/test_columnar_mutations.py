"""Damaged messages: a batch refuses those that `parse` refuses, and no compiled loop reads outside of a message."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.arrow.expected import check
from tests.arrow.mutations import mutated_batches
from tests.conftest import ROOT


@pytest.mark.slow
def test_damaged_messages() -> None:
    for session, messages in mutated_batches(3_000, 60):
        check(messages, session)


@pytest.mark.thorough
def test_a_hundred_thousand_damaged_messages() -> None:
    for session, messages in mutated_batches(100_000, 250):
        check(messages, session)


@pytest.mark.thorough
def test_no_loop_reads_outside_of_a_message() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.arrow.mutations"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 1000
