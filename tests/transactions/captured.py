"""The captures of the selection and of the whole collection, and what else is known of the logs that they are of."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep_pipeline.captures import Capture
from tests.codecs.captured import SELECTION, capture_files
from tests.conftest import SHARED_CAPTURES


def selected() -> list[Path]:
    """The captures that lie beside the tests."""
    return capture_files(SELECTION)


def collected() -> list[Path]:
    """The whole collection; empty where it is absent."""
    return capture_files(SHARED_CAPTURES) if SHARED_CAPTURES.is_dir() else []


def name(path: Path) -> str:
    """A capture's name for a test's id."""
    return "-".join((*path.parts[-3:-1], path.name.removesuffix(".jsonl.gz")))


def find(relative: str) -> Path:
    """A capture of the selection, or else of the collection; skips the test where there is neither."""
    for folder in (SELECTION, SHARED_CAPTURES):
        if (folder / relative).exists():
            return folder / relative
    pytest.skip(f"{relative} is neither in {SELECTION} nor in {SHARED_CAPTURES}")


def header(path: Path) -> dict[str, Any]:
    """What a capture says of its session."""
    with Capture.open(path) as capture:
        return capture.session.header


def messages(path: Path) -> list[tuple[Lsn, bytes]]:
    """A capture's messages with their positions."""
    with Capture.open(path) as capture:
        return list(capture)


@cache
def final_state(folder: Path) -> dict[str, Any]:
    """The final rows of a workload's tables."""
    with gzip.open(folder / "truth.final.json.gz", "rt", encoding="utf-8") as file:
        state: dict[str, Any] = json.load(file)
    return state
