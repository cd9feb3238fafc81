"""Indexes of small tables, in files as small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.pipeline.index.key_indexes import KeyIndexes
from logicalrep.pipeline.limits import Limits


def index_small_tables(limits: Limits = Limits()) -> Limits:
    """Return limits with which small tables have indexes, of several files, which have several blocks."""
    return replace(limits, indexed_rows=0, recent_entries=10, block_entries=4)


def small_indexes(folder: Path, most: int = 1 << 30) -> KeyIndexes:
    """Return indexes in a folder; any warning of them fails the test."""
    return KeyIndexes("lake", most, pytest.fail, folder)
