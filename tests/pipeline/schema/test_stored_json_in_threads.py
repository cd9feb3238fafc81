"""Threads that open tables at the same time read stored JSON of the same kinds."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys, threading
from dataclasses import make_dataclass

from logicalrep.pipeline.schema.stored_json import decode

sys.setswitchinterval(1e-6)
names = [f"field{number}" for number in range(20)]
for _ in range(60):
    column = make_dataclass("Column", [(name, int) for name in names], slots=True)
    kind = make_dataclass("Kind", [(name, column) for name in names[:5]], slots=True)
    content = {name: dict.fromkeys(names, 1) for name in names[:5]}
    barrier = threading.Barrier(6)

    def read():
        barrier.wait()
        decode(content, kind)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_the_first_reading_of_a_kind_by_several_threads() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
