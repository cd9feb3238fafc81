"""The upkeep of a catalog's service: merged files and removed snapshots, by requests of its own."""

from __future__ import annotations

import secrets
import time
import uuid

from pyiceberg.catalog import Catalog
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, RemoveSnapshotsUpdate, SetSnapshotRefUpdate

NAME = "public.t"


def compact(catalog: Catalog, operation: Operation = Operation.REPLACE, *, place: str | None = None) -> int:
    """Commit a snapshot with the same files, as a service that merges files does; return the snapshot's id.

    The manifest list is at `place`, by default the table's location.
    """
    table = catalog.load_table(NAME)
    current, metadata = table.current_snapshot(), table.metadata
    assert isinstance(metadata, TableMetadataV2)
    assert current is not None
    listed = f"{place or table.location()}/metadata/snap-{uuid.uuid4()}.avro"
    with table.io.new_input(current.manifest_list).open() as file, table.io.new_output(listed).create() as copy:
        copy.write(file.read())
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": secrets.randbits(62) + 1,
            "parent-snapshot-id": current.snapshot_id,
            "sequence-number": metadata.last_sequence_number + 1,
            "timestamp-ms": max(time.time_ns() // 1_000_000, metadata.last_updated_ms + 1),
            "manifest-list": listed,
            "summary": Summary(operation),
            "schema-id": metadata.current_schema_id,
        }
    )
    main = SetSnapshotRefUpdate.model_validate(
        {"ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot.snapshot_id}
    )
    catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), main))
    return snapshot.snapshot_id


def expire_all(catalog: Catalog) -> None:
    """Remove all snapshots except the last one."""
    table = catalog.load_table(NAME)
    ids = [
        snapshot.snapshot_id
        for snapshot in table.metadata.snapshots
        if snapshot.snapshot_id != table.metadata.current_snapshot_id
    ]
    catalog.commit_table(table, (), (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": ids}),))
