from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from logicalrep.pipeline.schema.file_partitions import PartitionColumnError
from logicalrep.pipeline.schema.table_settings import OwnKeyError, ProtectedColumnError
from logicalrep.pipeline.schema.table_spec import TableSpec


def refuse_unfit(table: TableSpec, numbers: Mapping[str, int]) -> None:
    """Raise ReservedColumnError, OwnKeyError, ProtectedColumnError or PartitionColumnError for unfit settings."""
    settings = table.settings
    if settings.key and table.key != settings.key:
        raise OwnKeyError.of(table.relation, settings.key)
    for name in sorted(settings.protected - {name for _, name in table.protected}):
        raise ProtectedColumnError(
            f"the settings mask or leave out the column {name}, which {table.relation} does not publish: write its "
            "current name into the settings by table, or remove it there if somebody dropped the column"
        )
    for number, name in table.protected:
        if numbers.get(name, number) != number:
            raise ProtectedColumnError(
                f"another column of {table.relation} had the name {name} before, and may have another name now: name "
                "all columns to mask or leave out in the settings by table"
            )
    for name in table.key or ():
        if not settings.writes(name):
            raise ProtectedColumnError(
                f"the column {name} of {table.relation} belongs to the key, which identifies rows: it can be "
                "hashed, but not nulled or left out"
            )
    companions: list[Literal["history", "changes"] | None] = [None]
    companions += ["history"] if settings.history else []
    companions += ["changes"] if settings.append else []
    for companion in companions:
        assert replace(table, companion=companion).stored
    for partition in settings.wanted_partitions if len(table.partitions) < len(settings.wanted_partitions) else ():
        if partition.column not in table.relation.names:
            raise PartitionColumnError(
                f"partition_by names the column {partition.column}, which {table.relation} does not publish: write its "
                "current name into the settings by table"
            )
    assert len(table.file_partitions) == len(settings.wanted_partitions)


def with_file_partitions_of(table: TableSpec, last: TableSpec | None) -> TableSpec:
    """Keep the last file partitions under the same settings: a renamed column has its old name in the settings."""
    is_same = last is not None and last.relation.relation_id == table.relation.relation_id
    if last is None or not is_same or last.settings.partition_by != table.settings.partition_by:
        return table
    are_there = {rule.number for rule in last.partitions} <= {*table.attnums}
    return replace(table, partitions=last.partitions) if are_there else table
