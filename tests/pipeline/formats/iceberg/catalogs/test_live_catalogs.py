"""Whole runs over catalogs of other projects that own their tables, choose locations and vend credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.formats.iceberg.catalogs.live_servers import seaweedfs
from tests.pipeline.formats.iceberg.catalogs.whole_run import WholeRun
from tests.postgres.servers import Database

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")]


@pytest.mark.parametrize("vends", [True, False])
def test_seaweedfs_has_the_tables_through_kills_and_to_the_end(db18: Database, tmp_path: Path, vends: bool) -> None:
    with seaweedfs(tmp_path, vends=vends) as live:
        WholeRun(db18, tmp_path / "lake", live).play()
