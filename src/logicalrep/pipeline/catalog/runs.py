"""The division of a table's changes into runs: whole transactions with one description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_spec import TableSpec


def runs(
    previous_spec: TableSpec, described: Sequence[tuple[SentRelation, TableSpec]], changes: Sequence[ChangeBatch]
) -> list[tuple[TableSpec, list[ChangeBatch]]]:
    """Divide whole transactions by their descriptions; the last description has a run even without changes.

    Raises NeedsResync if one transaction has several descriptions: its changes must be applied at once.
    """
    whole = TableChanges(batches=changes)
    lsns, ordinals = whole.lsns, whole.ordinals
    bounds: list[tuple[int, TableSpec]] = [(0, previous_spec)]
    for relation, table in described:
        if not is_same_shape(bounds[-1][1], table):
            at = relation.index_in(lsns, ordinals)
            if 0 < at < len(lsns) and lsns[at - 1] == lsns[at]:
                raise NeedsResync("its columns or its key changed within a transaction")
            bounds.append((at, table))
    ends = [*(start for start, _ in bounds[1:]), len(lsns)]
    all_runs = [(table, [*slices(changes, start, end)]) for (start, table), end in zip(bounds, ends, strict=True)]
    return [
        (table, batches) for number, (table, batches) in enumerate(all_runs, 1) if batches or number == len(all_runs)
    ]


def slices(batches: Sequence[ChangeBatch], start: int, end: int) -> Iterator[ChangeBatch]:
    """Yield the changes from the index `start` to before the index `end`; indexes count over all batches."""
    first = 0
    for batch in batches:
        bounds = max(start - first, 0), min(end - first, batch.num_rows)
        if bounds[0] < bounds[1]:
            yield batch.slice(bounds[0], bounds[1] - bounds[0])
        first += batch.num_rows


def is_same_shape(table: TableSpec, other: TableSpec) -> bool:
    return (table.attnums, table.key, table.relation) == (other.attnums, other.key, other.relation)


__all__ = ["is_same_shape", "runs", "slices"]
