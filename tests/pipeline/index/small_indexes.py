"""Indexes of small tables, in files as small."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.index import key_index, key_indexes, runs
from logicalrep.pipeline.index.key_indexes import KeyIndexes


def index_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small tables have indexes, of several files with several blocks."""
    monkeypatch.setattr(key_indexes, "LEAST_ROWS", 0)
    monkeypatch.setattr(key_index, "RECENT", 10)
    monkeypatch.setattr(runs, "BLOCK", 4)


def small_indexes(folder: Path, most: int = 1 << 30) -> KeyIndexes:
    """Return indexes in a folder; any warning of them fails the test."""
    return KeyIndexes("lake", most, pytest.fail, folder)
