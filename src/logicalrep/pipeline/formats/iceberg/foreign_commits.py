"""The writer of an Iceberg table's version, and the changes of other programs.

Programs that merge files, or expire snapshots, leave the rows as they are: their snapshots have the operation
`replace`, or they write no snapshot. Source: "Snapshots" in the Iceberg Table Spec.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from logicalrep.pipeline.formats.iceberg.metadata import VERSION, WRITER, format_change


def writer_of(metadata: TableMetadata, version: int) -> str | None:
    is_ours = metadata.properties.get(VERSION) == str(version)
    return metadata.properties.get(WRITER, "") if is_ours else None


def columns_of(schema: Schema) -> object:
    """Return the columns of a schema without their comments."""
    return _without_comments(schema.model_dump()["fields"])


def _without_comments(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_comments(value) for name, value in content.items() if name != "doc"}
    return [_without_comments(value) for value in content] if isinstance(content, list | tuple) else content


def change_between(previous: TableMetadata, current: TableMetadata) -> str | None:
    """Return another program's change since a version; None if the rows and the columns are the same."""
    if columns_of(current.schema()) != columns_of(previous.schema()):
        return "another program has changed its columns"
    if (change := format_change(current, previous.format_version)) is not None:
        return change
    if current.default_spec_id != previous.default_spec_id:
        return "another program has changed its partitions"
    snapshot, previous_id = current.current_snapshot(), previous.current_snapshot_id
    while snapshot is not None and snapshot.snapshot_id != previous_id:
        if snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE:
            return f"{_operation(snapshot)} of another program has changed its rows"
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else current.snapshot_by_id(parent)
    return None if snapshot is not None or previous_id is None else "another program has changed its rows"


def _operation(snapshot: Snapshot) -> str:
    return "a commit" if snapshot.summary is None else f"{snapshot.summary.operation.value}"
