"""Partitions that were dropped or detached: PostgreSQL sends no DELETE of their rows.

All of their rows are within the bounds of the partition, unless it was attached with other bounds for a while. Then
PostgreSQL sent a Relation message of the partition before its first row within these bounds.

So replicate replaces the rows within the bounds by the server's rows of a snapshot. That is correct whatever
happened to these bounds meanwhile: a default partition, or another partition, may have taken rows of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import ge, le, lt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.catalog.evolution import fitted
from logicalrep.pipeline.schema.table_facts import PartitionBound
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.table_rows.conditions import ColumnComparison, Condition, ConditionGroup

_COMPARED = {
    "=": pc.equal,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}
_OPERATORS = {">=": ge, "<": lt, "<=": le}


@dataclass(frozen=True, slots=True)
class LostPartitions:
    partitions: tuple[int, ...]
    """The OIDs of the partitions with rows."""
    bounds: tuple[PartitionBound, ...]
    """Each row of these partitions is within at least one of the bounds."""

    def condition(self, table: TableSpec) -> Condition:
        """Return the condition of the rows within the bounds, under the table's current names of columns."""
        names = _names(table)
        groups = [
            ConditionGroup(
                _is_list(bound),
                tuple(ColumnComparison(names[bound.column], operator, text) for operator, text in bound.comparisons),
            )
            for bound in self.bounds
        ]
        return groups[0] if len(groups) == 1 else ConditionGroup(True, tuple(groups))

    def columns(self, table: TableSpec) -> list[str]:
        """Return the server's names of the compared columns."""
        names = _names(table)
        return list(dict.fromkeys(names[bound.column] for bound in self.bounds))

    def stored_columns(self, table: TableSpec) -> list[str]:
        return [table.by_number[number, False].name for number in dict.fromkeys(bound.column for bound in self.bounds)]

    def are_within(self, rows: pa.Table, table: TableSpec) -> NDArray[np.bool_]:
        """Return for each stored row, with at least `stored_columns`, whether it is within the bounds."""
        masks = []
        for bound in self.bounds:
            values = rows.column(table.by_number[bound.column, False].name)
            compared = [
                _COMPARED[operator](values, _value(table, bound.column, text)) for operator, text in bound.comparisons
            ]
            masks.append(reduce(pc.or_ if _is_list(bound) else pc.and_, compared))
        within: NDArray[np.bool_] = reduce(pc.or_, masks).fill_null(False).to_numpy()
        return within

    def may_be_in_file(self, least: Mapping[str, Any], greatest: Mapping[str, Any], table: TableSpec) -> bool:
        """Return whether a file with these bounds of its columns may have rows within the bounds."""
        for bound in self.bounds:
            name = table.by_number[bound.column, False].name
            if name not in least or name not in greatest:
                return True
            # Some programs store bounds of times with fewer digits.
            low, high = _shortened(least[name]), _shortened(greatest[name])
            values = [
                (operator, _shortened(_value(table, bound.column, text).as_py()))
                for operator, text in bound.comparisons
            ]
            if _is_list(bound):
                if any(low <= value <= high for _, value in values):
                    return True
            elif all(high >= value if operator == ">=" else low <= value for operator, value in values):
                return True
        return False

    def partitions_within(self, table: TableSpec) -> set[int]:
        """Return the OIDs of a table's partitions that may have rows within the bounds."""
        parents, bounds = _parents(table), {bound.partition: bound for bound in table.evidence.bounds}
        chosen = set()
        for partition, _ in table.files:
            chain = [bounds[oid] for oid in _chain(partition, parents) if oid in bounds]
            if any(all(_may_overlap(table, bound, other) for other in chain) for bound in self.bounds):
                chosen.add(partition)
        return chosen


def lost_oids(previous_spec: TableSpec, current_spec: TableSpec, copied: Collection[int] = ()) -> set[int]:
    """Return the OIDs of the partitions whose rows may have left the table; `copied` are partitions to load."""
    previous_oids = {oid for oid, _ in previous_spec.files}.union(copied, previous_spec.evidence.filled)
    return previous_oids - {oid for oid, _ in current_spec.files}


def lost_partitions(
    previous_spec: TableSpec, current_spec: TableSpec, copied: Collection[int] = ()
) -> LostPartitions | None:
    """Return the dropped and detached partitions, empty if there are none; None if no bounds have exactly their rows.

    `previous_spec` describes the copy: all of its rows of a partition are within the bounds that it has.
    """
    lost = sorted(lost_oids(previous_spec, current_spec, copied))
    parents = _parents(previous_spec)
    bounds = {bound.partition: bound for bound in previous_spec.evidence.bounds}
    used: dict[tuple[int, tuple[tuple[str, str], ...]], PartitionBound] = {}
    for partition in lost:
        chain = (bounds[oid] for oid in _chain(partition, parents) if oid in bounds)
        bound = next((bound for bound in chain if _is_exact(previous_spec, bound)), None)
        if bound is None:
            return None
        used.setdefault((bound.column, bound.comparisons), bound)
    return LostPartitions(tuple(lost), tuple(used.values()))


def _is_exact(table: TableSpec, bound: PartitionBound) -> bool:
    """Return whether the stored values show which rows are within a bound."""
    column, name = table.by_number.get((bound.column, False)), _names(table).get(bound.column)
    if column is None or name is None or name in table.settings.protected:
        return False
    is_bounded = _is_list(bound) or len(bound.comparisons) == 2
    # A value beyond the stored type, such as infinity, is NULL outside of the key.
    if not is_bounded and name not in (table.key or ()):
        return False
    return all(_value(table, bound.column, text).is_valid for _, text in bound.comparisons)


def without_partitions(table: TableSpec, partitions: Collection[int]) -> TableSpec:
    evidence = table.evidence
    return replace(
        table,
        files=tuple(file for file in table.files if file[0] not in partitions),
        evidence=replace(
            evidence,
            written=tuple(row for row in evidence.written if row[0] not in partitions),
            links=tuple(link for link in evidence.links if link[0] not in partitions),
            bounds=tuple(bound for bound in evidence.bounds if bound.partition not in partitions),
        ),
    )


def _names(table: TableSpec) -> dict[int, str]:
    return dict(zip(table.attnums, table.relation.names, strict=True))


def _parents(table: TableSpec) -> dict[int, int]:
    return {oid: parent for oid, parent, _ in table.evidence.links}


def _chain(partition: int, parents: Mapping[int, int]) -> list[int]:
    chain = [partition]
    while chain[-1] in parents:
        chain.append(parents[chain[-1]])
    return chain


def _is_list(bound: PartitionBound) -> bool:
    return bound.comparisons[0][0] == "="


def _value(table: TableSpec, column: int, text: str) -> pa.Scalar:
    """Return the stored value of the server's text; null if the stored type cannot hold it."""
    return fitted(table, column, text)[0][0]


def _shortened(value: Any) -> Any:
    return value.replace(microsecond=0) if hasattr(value, "microsecond") else value


def _may_overlap(table: TableSpec, bound: PartitionBound, other: PartitionBound) -> bool:
    """Return whether a row may be within both bounds."""
    if bound.column != other.column:
        return True
    values = [
        [(operator, _value(table, part.column, text).as_py()) for operator, text in part.comparisons]
        for part in (bound, other)
    ]
    if any(value is None for part in values for _, value in part):
        return True
    lists = [_is_list(bound), _is_list(other)]
    if all(lists):
        return bool({value for _, value in values[0]} & {value for _, value in values[1]})
    if any(lists):
        singles, ends = values if lists[0] else values[::-1]
        return any(all(_OPERATORS[name](value, end) for name, end in ends) for _, value in singles)
    return all(
        (high >= low if name == "<=" else high > low)
        for these_ends, other_ends in (values, values[::-1])
        for low_operator, low in these_ends
        if low_operator == ">="
        for name, high in other_ends
        if name != ">="
    )
