"""Change batches of rows that are written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.arrow.changes.change_batch import NEW, OLD, UNREADABLE, ChangeBatch
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import DELETE, INSERT, KEY, TRUNCATE, UPDATE, WHOLE_ROW
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OPS = {"insert": INSERT, "update": UPDATE, "delete": DELETE, "truncate": TRUNCATE, "unreadable": UNREADABLE}


def relation(
    names: Sequence[str], key: Sequence[str] | None = ("id",), *, oid: int = 7, type_id: int = 25
) -> TableDescription:
    """Return a table's description; all columns are its replica identity without a key."""
    flagged = names if key is None else key
    columns = tuple(
        v1.Column(flags=int(name in flagged), name=name, type_id=Oid(type_id), type_modifier=-1) for name in names
    )
    return TableDescription(
        relation_id=Oid(oid),
        schema="public",
        name="t",
        replica_identity=ReplicaIdentity.FULL if key is None else ReplicaIdentity.DEFAULT,
        columns=columns,
        types=(None,) * len(columns),
    )


def change_batch(described: TableDescription, changes: Sequence[Mapping[str, Any]]) -> ChangeBatch:
    """Return changes of a table.

    Each has an `op`, and perhaps `before`, `after` (mappings of names to texts), `unchanged` (names), `commit_lsn`,
    `ordinal`, `xid` and `commit_timestamp`, a datetime.
    """
    names, old_kind = described.names, WHOLE_ROW if described.replica_identity is ReplicaIdentity.FULL else KEY
    old, new = (
        [pa.array([(change.get(side) or {}).get(name) for change in changes], pa.string()) for name in names]
        for side in ("before", "after")
    )
    unsent = np.array([[name in change.get("unchanged", ()) for name in names] for change in changes], bool)
    numbers = [
        np.array([_number(change.get(name, default)) for change in changes], np.int64)
        for name, default in (("commit_lsn", 1), ("ordinal", 0), ("commit_timestamp", 0), ("xid", 1))
    ]
    ops = np.array([OPS[change["op"]] for change in changes], np.uint8)
    kinds = np.array([old_kind if change.get("before") is not None else 0 for change in changes], np.uint8)
    return ChangeBatch.of(described, ops, kinds, numbers, unsent.reshape(len(changes), len(names)), old, new)


def _number(value: int | datetime) -> int:
    return value if isinstance(value, int) else (value - EPOCH) // timedelta(microseconds=1)


def plain(batch: ChangeBatch) -> list[tuple[str, dict[str, str | None] | None, dict[str, str | None] | None]]:
    """Return changes as their op, old and new row, without the values that were not sent."""
    ops = {op: name for name, op in OPS.items()}
    names, unsent = batch.relation.names, batch.unsent()
    sides = [[column.to_pylist() for column in batch.texts(prefix)] for prefix in (OLD, NEW)]

    def row(side: int, number: int) -> dict[str, str | None]:
        return {
            name: sides[side][index][number]
            for index, name in enumerate(names)
            if side == 0 or not unsent[number, index]
        }

    return [
        (
            ops[op],
            row(0, number) if batch.has_old[number] else None,
            row(1, number) if batch.has_new[number] else None,
        )
        for number, op in enumerate(batch.ops.tolist())
    ]


__all__ = ["OPS", "change_batch", "plain", "relation"]
