"""The walk from a snapshot to those before it, over metadata that anybody may have written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from logicalrep.pipeline.formats.iceberg.catalogs.catalog_versions import CatalogVersions
from logicalrep.pipeline.formats.iceberg.versions import MetadataVersion


def test_a_circle_of_snapshots_ends() -> None:
    snapshots = [
        SimpleNamespace(snapshot_id=id_, parent_snapshot_id=3 - id_, summary=None, sequence_number=id_)
        for id_ in (1, 2)
    ]
    metadata = cast(Any, SimpleNamespace(snapshots=snapshots, current_snapshot_id=2, properties={}))
    metadata.current_snapshot = lambda: snapshots[1]
    metadata.snapshot_by_id = lambda id_: snapshots[id_ - 1]
    versions = CatalogVersions.__new__(CatalogVersions)
    assert versions.commit_of(MetadataVersion(1, metadata, "metadata")) is None
