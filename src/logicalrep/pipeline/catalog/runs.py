"""A table's changes in runs of one description, each of whole transactions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from logicalrep.arrow.feed.rare_rows import SentRelation
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.spec.table_spec import TableSpec


def runs(
    before: TableSpec, described: Sequence[tuple[SentRelation, TableSpec]], changes: pa.Table
) -> list[tuple[TableSpec, pa.Table]]:
    """Divide changes by the descriptions that they have; one without changes has an empty run if it is the last.

    Args:
        before: the description of changes before the first Relation message.
        described: the messages with the description of the changes behind each, in their order.
        changes: a table's rows of the change feed, whole transactions in the order of their commits.

    Raises NeedsResync if a transaction has changes with several descriptions: it must come to the table at once.

    Example:
        >>> [(len(table.relation.columns), rows.num_rows) for table, rows in runs(before, described, changes)]
        [(2, 7), (3, 3)]
    """
    lsns, ordinals = (changes[name].to_numpy() for name in ("commit_lsn", "ordinal"))
    bounds: list[tuple[int, TableSpec]] = [(0, before)]
    for relation, table in described:
        if not is_same_shape(bounds[-1][1], table):
            first, end = (int(np.searchsorted(lsns, relation.commit_lsn, side)) for side in ("left", "right"))
            at = first + int(np.searchsorted(ordinals[first:end], relation.ordinal))
            if 0 < at < len(lsns) and lsns[at - 1] == lsns[at]:
                raise NeedsResync("its columns or its key changed within a transaction")
            bounds.append((at, table))
    ends = [*(start for start, _ in bounds[1:]), len(lsns)]
    found = [(table, changes.slice(start, end - start)) for (start, table), end in zip(bounds, ends, strict=True)]
    return [(table, rows) for number, (table, rows) in enumerate(found, 1) if rows.num_rows or number == len(found)]


def is_same_shape(table: TableSpec, other: TableSpec) -> bool:
    """Return whether rows of two descriptions have the same columns and the same key."""
    return (table.attnums, table.key, table.relation) == (other.attnums, other.key, other.relation)


__all__ = ["is_same_shape", "runs"]
