"""The metadata of an Iceberg table: its properties, schema and snapshots, and their updates."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.exceptions import ValidationError
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.partitioning import PARTITION_FIELD_ID_START
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import (
    TableMetadata,
    TableMetadataUtil,
    TableMetadataV1,
    TableMetadataV2,
    TableMetadataV3,
)
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    SetCurrentSchemaUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
    _apply_table_update,
)
from pyiceberg.typedef import IcebergBaseModel

from logicalrep.pipeline.formats.iceberg.memory_files import ZIPPED, unzipped
from logicalrep.pipeline.formats.iceberg.partitions import partition_spec
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.field_ids import file_schema
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.row_lineage import RowLineage
from logicalrep.pipeline.storage.storage import Storage

TABLE, LOAD, STOPPED = "logicalrep.table", "logicalrep.load", "logicalrep.stopped"
"""The properties with the table's description, the load that the rows began with, and the stop reason."""
WRITER, VERSION, APPLIED = "logicalrep.writer", "logicalrep.version", "logicalrep.applied"
"""The properties with the writing process and the number of replicate's last version, and with the applied LSNs."""
SNAPSHOT = "logicalrep.snapshot"
"""The property of a table in a catalog with the id of replicate's last snapshot, which a service may remove."""
_VERSION_3 = 3
_PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
"""The property with the number of earlier metadata versions that stay."""
_COUNT = "total-data-files"
"""The property of a summary with the number of all data files."""


def metadata_path(folder: str, version: int) -> str:
    return f"{folder}/metadata/v{version}.metadata.json"


def read_metadata(storage: Storage, path: str) -> TableMetadata | None:
    """Return the metadata in a file at the destination, which some catalogs compress; None if the file is missing.

    Raises MalformedFileError if the file is damaged, and StorageError if it cannot be read now.
    """
    data = storage.read(path, storage.limits.json_bytes)
    if data is None:
        return None
    with storage.decoding(path):
        text = unzipped(data, storage.limits.json_bytes) if path.endswith(ZIPPED) else data
        try:
            return TableMetadataUtil.parse_raw(text.decode())
        except ValidationError as error:
            raise ValueError(" ".join(str(error).split())) from None


def iceberg_schema(table: TableSpec, schema_id: int) -> Schema:
    fields = pyarrow_to_schema(file_schema(table.stored)).fields
    comments = table.column_comments
    described = (field.model_copy(update={"doc": comments.get(field.name)}) for field in fields)
    return Schema(*described, schema_id=schema_id)


def format_change(metadata: TableMetadata, version: int) -> str | None:
    """Return another program's change of the format version; None for the version that replicate gave the table."""
    if metadata.format_version == version:
        return None
    return f"another program has changed its format version to {metadata.format_version}"


class _UpgradeToVersion3(UpgradeFormatVersionUpdate):
    """The upgrade to version 3, which pyiceberg leaves to services of catalogs."""


@_apply_table_update.register(_UpgradeToVersion3)
def _upgraded(update: _UpgradeToVersion3, metadata: TableMetadata, context: Any) -> TableMetadata:
    context.add_update(update)
    return TableMetadataV3.model_construct(**dict(metadata) | {"format_version": 3, "next_row_id": 0})


def upgrade_to(version: int) -> TableUpdate:
    kind = _UpgradeToVersion3 if version >= _VERSION_3 else UpgradeFormatVersionUpdate
    return kind.model_validate({"format-version": version})


def upgrades(metadata: TableMetadata, table: TableSpec) -> list[TableUpdate]:
    version = table.settings.format_version
    return [] if metadata.format_version >= version else [upgrade_to(version)]


def can_become(metadata: TableMetadata, table: TableSpec) -> bool:
    """Return whether updates give a table the version of its description: no update lowers a version."""
    return not isinstance(metadata, TableMetadataV1) and metadata.format_version <= table.settings.format_version


def next_row_id(metadata: TableMetadata) -> int:
    return (metadata.next_row_id or 0) if isinstance(metadata, TableMetadataV3) else 0


def first_new_lineage(metadata: TableMetadata, new: Iterable[DataFile]) -> RowLineage:
    """Return the lineage of the next commit's first new row.

    No row of the new files has a later id or number: the files of a renamed table have the lineage of the old table.
    """
    row_ids, numbers = [next_row_id(metadata)], [next_sequence_number(metadata)]
    for file in new:
        if file.lineage is not None:
            row_ids.append(file.lineage.first_row_id + file.rows)
            numbers.append(file.lineage.sequence_number + 1)
    return RowLineage(max(row_ids), max(numbers))


class _WritableMetadata(TableMetadataV3):
    """Metadata of version 3, which pyiceberg does not write."""

    def model_dump_json(  # type: ignore[override]
        self, exclude_none: bool = True, exclude: Any | None = None, by_alias: bool = True, **settings: Any
    ) -> str:
        return IcebergBaseModel.model_dump_json(self, exclude_none, exclude, by_alias, **settings)


def writable(metadata: TableMetadata) -> TableMetadata:
    """Return metadata that pyiceberg writes into a file."""
    if not isinstance(metadata, TableMetadataV3):
        return metadata
    return _WritableMetadata.model_construct(**dict(metadata))


def new_metadata(storage: Storage, folder: str, table: TableSpec, properties: Mapping[str, str]) -> TableMetadata:
    schema, spec = iceberg_schema(table, 0), partition_spec(table, [], 0)
    values: dict[str, Any] = {
        "location": storage.location(folder),
        "schemas": [schema],
        "last-column-id": schema.highest_field_id,
        "current-schema-id": 0,
        "partition-specs": [spec],
        "default-spec-id": 0,
        "last-partition-id": max((field.field_id for field in spec.fields), default=PARTITION_FIELD_ID_START - 1),
        "sort-orders": [UNSORTED_SORT_ORDER],
        "default-sort-order-id": 0,
        "properties": dict(properties),
    }
    if table.settings.has_row_lineage:
        return TableMetadataV3(**values | {"next-row-id": 0})
    return TableMetadataV2(**values)


def schema_updates(metadata: TableMetadata, table: TableSpec) -> list[TableUpdate]:
    table_schema = iceberg_schema(table, 0)
    if metadata.schema().fields == table_schema.fields:
        return []
    for schema in metadata.schemas:
        if schema.fields == table_schema.fields:
            return [_current(schema.schema_id)]
    number = max(schema.schema_id for schema in metadata.schemas) + 1
    return [AddSchemaUpdate(schema=iceberg_schema(table, number)), _current(number)]


def _current(schema_id: int) -> TableUpdate:
    values: dict[str, Any] = {"schema-id": schema_id}
    return SetCurrentSchemaUpdate(**values)


@dataclass(frozen=True)
class SnapshotNumbers:
    """The numbers of a new snapshot."""

    snapshot_id: int
    sequence_number: int
    """The number of the snapshot's commit, later than the numbers of all earlier commits."""
    row_ids: range | None = None
    """The row ids that the snapshot takes; None without row lineage."""


def snapshot_updates(
    storage: Storage,
    metadata: TableMetadata,
    schema_id: int,
    numbers: SnapshotNumbers,
    manifest_list: str,
    summary: Summary,
) -> list[TableUpdate]:
    """Return the updates that add a snapshot and make it main's last snapshot, with a later time than all others.

    Args:
        storage: the destination.
        metadata: the current metadata.
        schema_id: the id of the rows' schema.
        numbers: the numbers of the new snapshot.
        manifest_list: the path of the snapshot's manifest list.
        summary: the snapshot's summary.
    """
    values: dict[str, Any] = {
        "snapshot-id": numbers.snapshot_id,
        "parent-snapshot-id": metadata.current_snapshot_id,
        "sequence-number": numbers.sequence_number,
        "timestamp-ms": next_time(metadata),
        "manifest-list": storage.location(manifest_list),
        "summary": summary,
        "schema-id": schema_id,
    }
    if numbers.row_ids is not None:
        values |= {"first-row-id": numbers.row_ids.start, "added-rows": len(numbers.row_ids)}
    last: dict[str, Any] = {
        "ref-name": MAIN_BRANCH,
        "type": SnapshotRefType.BRANCH,
        "snapshot-id": numbers.snapshot_id,
    }
    if main := metadata.refs.get(MAIN_BRANCH):
        retention = main.model_dump(by_alias=True, exclude_none=True, exclude={"snapshot_id", "snapshot_ref_type"})
        last |= retention
    return [AddSnapshotUpdate(snapshot=Snapshot(**values)), SetSnapshotRefUpdate(**last)]


def next_time(metadata: TableMetadata) -> int:
    """Return the time of the next commit, in milliseconds since 1970: now, unless the table has later times already.

    Iceberg's Java library refuses a table whose times descend by more than a minute, as when a clock is set back.
    """
    return max(time.time_ns() // 1_000_000, _last_time(metadata) + 1)


def is_clock_behind(metadata: TableMetadata) -> bool:
    return time.time_ns() // 1_000_000 < _last_time(metadata)


def _last_time(metadata: TableMetadata) -> int:
    logged = [entry.timestamp_ms for entry in metadata.snapshot_log]
    return max(metadata.last_updated_ms, *logged, *(entry.timestamp_ms for entry in metadata.metadata_log), 0)


def next_sequence_number(metadata: TableMetadata) -> int:
    assert not isinstance(metadata, TableMetadataV1)
    return metadata.last_sequence_number + 1


def retention_properties(hours: float, limits: Limits) -> dict[str, str]:
    return {
        "history.expire.max-snapshot-age-ms": str(int(hours * 3_600_000)),
        "gc.enabled": "false",
        _PREVIOUS_VERSIONS: str(limits.metadata_versions),
    }


def count_of_files(snapshot: Snapshot) -> int | None:
    """Return the number of a snapshot's data files by its summary; None if the summary of another program lacks it."""
    text = None if snapshot.summary is None else snapshot.summary.additional_properties.get(_COUNT)
    return int(text) if text is not None else None


def commit_summary(
    operation: Operation | None,
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    previous_files: Mapping[str, DataFile],
    files: Mapping[str, DataFile],
    position: Position | None,
    own: Mapping[str, str],
) -> Summary:
    """Return the summary of a commit's snapshot.

    Args:
        operation: the operation of the commit; None to choose append or overwrite.
        added: the files that the commit adds.
        removed: the files that the commit removes.
        previous_files: all files before the commit, by path.
        files: all files after the commit, by path.
        position: the position of the files; None for the same rows.
        own: the properties that let replicate find its own commits.
    """
    new = [file for file in added if file.path not in previous_files]
    deleted = [file for file in removed if file.path not in files]
    if operation is None:
        operation = Operation.OVERWRITE if removed else Operation.APPEND
    counts = {
        "added-data-files": len(new),
        "deleted-data-files": len(deleted),
        "added-records": sum(file.rows for file in new),
        "deleted-records": sum(file.rows for file in deleted),
        _COUNT: len(files),
        "total-records": sum(file.rows for file in files.values()),
        "total-position-deletes": sum(file.rows - file.live_rows for file in files.values()),
    }
    texts = {name: str(count) for name, count in counts.items()} | dict(own)
    if position is not None:
        texts["logicalrep.lsn"] = str(position.lsn)
    return Summary(operation, **texts)
