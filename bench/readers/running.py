"""Runs a reader's program until each of its tables has a result, also if its process ends early."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.readers.examining import UNFINISHED

_ROOT = Path(__file__).parents[2]
LONGEST = 900
"""The seconds after which a process is killed if it has no further result."""


def run_program(name: str, program: Sequence[str], answer: Path, longest: float = LONGEST) -> dict[str, Any]:
    """Run a program until all tables have results; return the content of its file `answer`.

    How a process ended is the result of the table that it read; the next process reads the tables without a result.
    """
    answer.unlink(missing_ok=True)
    while ended := _run(program, answer, longest):
        content = content_of(answer, name)
        results = content["results"]
        if not results or results[-1]["ended"] != UNFINISHED:
            # It ended before its first table, or after its last one.
            content["ended"] = ended
            answer.write_text(json.dumps(content), "utf-8")
            break
        results[-1]["ended"] = ended
        answer.write_text(json.dumps(content), "utf-8")
    return content_of(answer, name)


def _run(program: Sequence[str], answer: Path, longest: float) -> str:
    """Run a process; return how it ended, or an empty text after all tables."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "TZ": "UTC"}
    with subprocess.Popen(program, env=environment, cwd=_ROOT) as process:
        count = -1
        while True:
            try:
                code = process.wait(longest)
            except subprocess.TimeoutExpired:
                if count == (count := len(content_of(answer, "")["results"])):
                    process.kill()
                    return f"{UNFINISHED} after {longest:g} seconds"
            else:
                return f"{UNFINISHED} with the code {code}" if code else ""


def content_of(answer: Path, name: str) -> dict[str, Any]:
    """Return the name and the version of a reader, and its results."""
    if not answer.exists():
        return {"reader": name, "version": "", "results": []}
    content: dict[str, Any] = json.loads(answer.read_text("utf-8"))
    return content


__all__ = ["LONGEST", "content_of", "run_program"]
