"""The refusal of settings that do not fit a table's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from logicalrep.pipeline.schema.file_partitions import PartitionColumnError
from logicalrep.pipeline.schema.table_settings import OwnKeyError, ProtectedColumnError
from logicalrep.pipeline.schema.table_spec import TableSpec


def refuse_unfit(table: TableSpec, numbers: Mapping[str, int]) -> None:
    """Refuse settings that do not fit the columns.

    Args:
        table: the table under its settings.
        numbers: the numbers that columns to be masked or left out have to have, as far as they are known.

    Raises:
        ReservedColumnError: a column has the name of one that the settings add.
        OwnKeyError: the table's own settings give it a key that it cannot have.
        ProtectedColumnError: a column to be masked or left out is not there, or is one of the key that has to stay.
        PartitionColumnError: a column to partition by is not there, or is of no such type.
    """
    settings = table.settings
    if settings.key and table.key != settings.key:
        raise OwnKeyError.of(table.relation, settings.key)
    for name in sorted(settings.protected - {name for _, name in table.protected}):
        raise ProtectedColumnError(
            f"{table.relation} has no published column {name}, which is to be masked or left out: write its "
            "present name into the settings by table, or remove it there if the column is gone"
        )
    for number, name in table.protected:
        if numbers.get(name, number) != number:
            raise ProtectedColumnError(
                f"the column {name} of {table.relation} is not the one that had this name before, which may still be "
                "there under another: name in the settings by table all columns that are to be masked or left out"
            )
    for name in table.key or ():
        if not settings.writes(name):
            raise ProtectedColumnError(
                f"the column {name} of {table.relation} belongs to the key, which tells rows apart: it can be "
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
                f"{table.relation} has no published column {partition.column}, by which it is to be partitioned: write "
                "its present name into the settings by table"
            )
    assert len(table.file_partitions) == len(settings.wanted_partitions)


def with_file_partitions_of(table: TableSpec, last: TableSpec | None) -> TableSpec:
    """Return a table with the file partitions of its last description, if its settings ask for the same.

    Their columns may have other names now, which the settings do not know yet.
    """
    is_same = last is not None and last.relation.relation_id == table.relation.relation_id
    if last is None or not is_same or last.settings.partition_by != table.settings.partition_by:
        return table
    are_there = {rule.number for rule in last.partitions} <= {*table.attnums}
    return replace(table, partitions=last.partitions) if are_there else table
