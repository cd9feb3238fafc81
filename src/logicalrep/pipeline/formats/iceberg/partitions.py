"""A table's file partitions as Iceberg's partition specs, which keep their values in manifests, and in no column.

A spec is known by its source columns and transforms; the names of its fields stay when columns are renamed. Source:
"Partitioning" and "Partition Evolution" in the Iceberg Table Spec.
"""

from __future__ import annotations

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


def partition_spec(table: TableSpec, known: Sequence[PartitionSpec], spec_id: int) -> PartitionSpec:
    """Return the spec of a table's file partitions: one of those that are known, if it is there, else a new one.

    Raises PartitionColumnError if a column has the name of one of its fields.
    """
    before = [field for spec in known for field in spec.fields]
    first = max((field.field_id for field in before), default=PARTITION_FIELD_ID_START - 1) + 1
    fields = [_field(table, each, before, number) for number, each in enumerate(table.file_partitions, first)]
    spec = PartitionSpec(*fields, spec_id=spec_id)
    found = next((each for each in known if _identity(each) == _identity(spec)), spec)
    for field in found.fields:
        if field.name in table.stored.names:
            raise PartitionColumnError(
                f"{table.relation} has a column {field.name}, which is the name of its partitions: rename the column"
            )
    return found


def spec_updates(before: TableMetadata, table: TableSpec) -> list[TableUpdate]:
    """Return what gives a table the spec of a description; nothing if it has it."""
    number = max(spec.spec_id for spec in before.partition_specs) + 1
    spec = partition_spec(table, before.partition_specs, number)
    if spec.spec_id == before.default_spec_id:
        return []
    values: dict[str, Any] = {"spec-id": spec.spec_id}
    new: list[TableUpdate] = [AddPartitionSpecUpdate(spec=spec)] if spec.spec_id == number else []
    return [*new, SetDefaultSpecUpdate(**values)]


def has_spec_of(metadata: TableMetadata, table: TableSpec) -> bool:
    """Return whether the metadata has the spec of a description."""
    wanted = partition_spec(table, metadata.partition_specs, -1)
    return wanted.spec_id == metadata.default_spec_id


def _identity(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(field.source_id, str(field.transform)) for field in spec.fields]


def _field(table: TableSpec, partition: FilePartition, known: Sequence[PartitionField], number: int) -> PartitionField:
    source = field_id(table.schema.field(partition.source))
    assert source is not None
    transform = _transform(partition)
    there = next((each for each in known if (each.source_id, each.transform) == (source, transform)), None)
    if there is not None:
        return there
    return PartitionField(source_id=source, field_id=number, transform=transform, name=partition.name)


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
