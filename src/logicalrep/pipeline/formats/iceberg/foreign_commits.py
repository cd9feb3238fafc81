"""Whose a version of an Iceberg table is, and whether another program's has the same rows.

Programs that merge files, or expire snapshots, leave the rows as they are: they say so by the operation `replace`, or
make no snapshot. Source: "Snapshots" in the Iceberg Table Spec.
"""

from __future__ import annotations

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from logicalrep.pipeline.formats.iceberg.metadata import VERSION, WRITER


def writer_of(metadata: TableMetadata, version: int) -> str | None:
    """Return the process of ours that has written a version; None for one of another program."""
    is_ours = metadata.properties.get(VERSION) == str(version)
    return metadata.properties.get(WRITER, "") if is_ours else None


def change_between(before: TableMetadata, after: TableMetadata) -> str | None:
    """Return what another program has changed since a version; None if the rows and the columns are the same."""
    if after.schema().fields != before.schema().fields:
        return "another program has changed its columns"
    if after.format_version != before.format_version or after.default_spec_id != before.default_spec_id:
        return "another program has changed its format version or its partitions"
    snapshot, known = after.current_snapshot(), before.current_snapshot_id
    while snapshot is not None and snapshot.snapshot_id != known:
        if snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE:
            return f"{_operation(snapshot)} of another program has changed its rows"
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else after.snapshot_by_id(parent)
    return None if snapshot is not None or known is None else "another program has changed its rows"


def _operation(snapshot: Snapshot) -> str:
    return "a commit" if snapshot.summary is None else f"{snapshot.summary.operation.value}"
