"""Catalogs for tests, which are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests

if any(importlib.util.find_spec(name) is None for name in ("moto", "pyiceberg", "sqlalchemy")):
    collect_ignore_glob = ["*"]


@pytest.fixture(
    params=["sqlite", "rest", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("postgresql", "glue"))]
)
def catalog(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CatalogOfTests]:
    """A catalog of each kind."""
    # Its libraries may be missing.
    from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of

    with catalog_of(request.param, tmp_path, monkeypatch) as opened:
        yield opened
