"""A table's file partitions as Iceberg partition specs, whose values are in manifests and in no column.

Source columns and transforms identify a spec; the names of its fields stay when columns are renamed. Source:
"Partitioning" and "Partition Evolution" in the Iceberg Table Spec.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyiceberg.partitioning import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
)
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddPartitionSpecUpdate, SetDefaultSpecUpdate, TableUpdate
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform, Transform

from logicalrep.pipeline.schema.field_ids import field_id
from logicalrep.pipeline.schema.file_partitions import FilePartition, PartitionColumnError
from logicalrep.pipeline.schema.table_spec import TableSpec


def partition_spec(table: TableSpec, specs: Sequence[PartitionSpec], spec_id: int) -> PartitionSpec:
    """Return the spec of a table's file partitions: an existing spec, or a new spec with the id `spec_id`.

    Raises PartitionColumnError if a column has the name of a partition field.
    """
    spec_fields = [field for spec in specs for field in spec.fields]
    first = max((field.field_id for field in spec_fields), default=PARTITION_FIELD_ID_START - 1) + 1
    fields = [
        _field(table, partition, spec_fields, number) for number, partition in enumerate(table.file_partitions, first)
    ]
    spec = PartitionSpec(*fields, spec_id=spec_id)
    chosen = next((spec_ for spec_ in specs if _identity(spec_) == _identity(spec)), spec)
    for field in chosen.fields:
        if field.name in table.stored.names:
            raise PartitionColumnError(
                f"{table.relation} has a column {field.name}, which is also the name of a partition: rename the column"
            )
    return chosen


def spec_updates(metadata: TableMetadata, table: TableSpec) -> list[TableUpdate]:
    number = max(spec.spec_id for spec in metadata.partition_specs) + 1
    spec = partition_spec(table, metadata.partition_specs, number)
    if spec.spec_id == metadata.default_spec_id:
        return []
    values: dict[str, Any] = {"spec-id": spec.spec_id}
    new: list[TableUpdate] = [AddPartitionSpecUpdate(spec=spec)] if spec.spec_id == number else []
    return [*new, SetDefaultSpecUpdate(**values)]


def has_current_spec(metadata: TableMetadata, table: TableSpec) -> bool:
    spec = partition_spec(table, metadata.partition_specs, -1)
    return spec.spec_id == metadata.default_spec_id


def _identity(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(field.source_id, str(field.transform)) for field in spec.fields]


def _field(table: TableSpec, partition: FilePartition, fields: Sequence[PartitionField], number: int) -> PartitionField:
    source = field_id(table.schema.field(partition.source))
    assert source is not None
    transform = _transform(partition)
    existing = next((field for field in fields if (field.source_id, field.transform) == (source, transform)), None)
    if existing is not None:
        return existing
    return PartitionField(source_id=source, field_id=number, transform=transform, name=_ascii_name(partition.name))


def _ascii_name(name: str) -> str:
    """Return a name of a partition field that Avro allows, as manifests have it: other characters become `_x` and hex.

    Iceberg's Java library changes names of fields in Avro in this way. DuckDB aborts at a name that Avro forbids.

    Example:
        >>> _ascii_name("_größe_day")
        '_gr_xF6_xDFe_day'
    """
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", name)


def _transform(partition: FilePartition) -> Transform[Any, Any]:
    match partition.transform:
        case "value":
            return IdentityTransform()
        case "day":
            return DayTransform()
        case "month":
            return MonthTransform()
        case "bucket":
            return BucketTransform(partition.buckets)
