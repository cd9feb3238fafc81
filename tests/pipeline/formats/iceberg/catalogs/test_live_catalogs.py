"""Whole runs over catalogs of other projects that own their tables, choose locations and vend credentials."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.formats.iceberg.catalogs.live_servers import LiveCatalog, azurite, seaweedfs
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer
from tests.pipeline.formats.iceberg.catalogs.whole_run import WholeRun
from tests.postgres.servers import Database

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")]


@pytest.mark.parametrize("vends", [True, False])
def test_seaweedfs_has_the_tables_through_kills_and_to_the_end(db18: Database, tmp_path: Path, vends: bool) -> None:
    with seaweedfs(tmp_path, vends=vends) as live:
        WholeRun(db18, tmp_path / "lake", live).play()


def test_tables_are_in_azure_with_tokens_of_the_catalog(db18: Database, tmp_path: Path) -> None:
    with azurite(tmp_path) as store:
        uri = f"abfss://warehouse@{store.account}.dfs.core.windows.net/tables"
        warehouse = Storage(uri, store.options)
        server = OwnerServer(warehouse)

        def vend() -> dict[str, str]:
            # Tokens of a minute, so that replicate renews them during the run.
            until = {f"adls.sas-token-expires-at-ms.{store.account}": str(int((time.time() + 60) * 1000))}
            return {f"adls.sas-token.{store.account}": store.token(60), **until}

        server.vend = vend
        with server.running():
            options = {"adls.blob-storage-authority": store.authority, "adls.blob-storage-scheme": "http"}
            live = LiveCatalog(server.uri, options, {"allow_http": "true"}, has_past=False)
            WholeRun(db18, tmp_path / "lake", live).play()
        assert not [path for path in warehouse.list("") if path.endswith(".parquet")]
