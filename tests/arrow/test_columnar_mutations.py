"""Damaged messages: all decoders refuse the same ones, and no kernel reads outside of a message."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.columnar.expected import check
from tests.columnar.mutations import mutated_batches
from tests.conftest import ROOT


@pytest.mark.parametrize(("backend", "versions"), [("numba", "4"), ("numpy", "1234")])
def test_damaged_messages(backend: str, versions: str) -> None:
    for session, messages in mutated_batches(3_000, 60, versions=versions):
        check(messages, session, backend=backend)


@pytest.mark.corpus
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_a_hundred_thousand_damaged_messages(backend: str) -> None:
    for session, messages in mutated_batches(100_000, 250):
        check(messages, session, backend=backend)


@pytest.mark.corpus
def test_no_kernel_reads_outside_of_a_message() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.columnar.mutations", "20000"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    refused, loaded = map(int, result.stdout.split())
    assert refused > 10_000
    assert loaded > 1000
