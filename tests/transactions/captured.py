"""Facts about the captures' logs."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from logicalrep import Lsn
from logicalrep.captures.capture import Capture
from tests.protocol.captured import COLLECTION


def name(path: Path) -> str:
    """Return a capture's name for a test's id."""
    return "-".join((*path.parts[-3:-1], path.name.removesuffix(".jsonl.gz")))


def find(relative: str) -> Path:
    """Return a capture by its path in the collection."""
    return COLLECTION / relative


def header(path: Path) -> dict[str, Any]:
    """Return a capture's header."""
    with Capture.open(path) as capture:
        return capture.session.header


def messages(path: Path) -> list[tuple[Lsn, bytes]]:
    """Return a capture's messages with their positions."""
    with Capture.open(path) as capture:
        return list(capture)


@cache
def final_state(folder: Path) -> dict[str, Any]:
    """Return the final rows of a workload's tables."""
    with gzip.open(folder / "truth.final.json.gz", "rt", encoding="utf-8") as file:
        state: dict[str, Any] = json.load(file)
    return state
