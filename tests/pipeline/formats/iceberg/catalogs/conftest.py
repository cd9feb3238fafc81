"""Catalogs for tests, which are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from logicalrep.pipeline.storage.storage import Storage

if TYPE_CHECKING:
    from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests
    from tests.pipeline.formats.iceberg.catalogs.owner import Owner

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


@pytest.fixture
def sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CatalogOfTests]:
    """An SQL catalog in a file."""
    from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of

    with catalog_of("sqlite", tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    """A catalog that owns its tables."""
    from tests.pipeline.formats.iceberg.catalogs.owner import Owner
    from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer

    with OwnerServer(Storage(str(tmp_path / "warehouse"))).running() as server:
        yield Owner(server, Storage(str(tmp_path / "lake")))
