"""Tests of replicated tables are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util

import pytest

if any(importlib.util.find_spec(name) is None for name in ("deltalake", "psycopg", "pyspark")):
    collect_ignore_glob = ["*"]


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return a set of transaction ids that refreshes of the catalog do not see, although they have committed."""
    from logicalrep.postgres.server import Connection
    from logicalrep.postgres.visibility import Visibility, query_visibility

    ids: set[int] = set()

    def visibility(connection: Connection) -> Visibility:
        visible = query_visibility(connection)
        return Visibility(visible.end, visible.running | ids)

    monkeypatch.setattr("logicalrep.pipeline.catalog.catalog.query_visibility", visibility)
    return ids
