"""Tests of replicated tables are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util

import pytest

if any(importlib.util.find_spec(name) is None for name in ("deltalake", "psycopg", "pyspark")):
    collect_ignore_glob = ["*"]


@pytest.fixture
def loads_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be loaded as often as a test changes them."""
    from logicalrep.pipeline.load import load_counts

    monkeypatch.setattr(load_counts, "MOST_LOADS", 1_000_000)
