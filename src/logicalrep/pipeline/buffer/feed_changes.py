"""Changes that an earlier version buffered as rows of the change feed, with maps of names to texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.arrow.changes.change_batch import UNREADABLE, ChangeBatch
from logicalrep.arrow.changes.sent_relation import SentRelation, in_order
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import DELETE, INSERT, KEY, TRUNCATE, UPDATE, WHOLE_ROW
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

_OPS = {"insert": INSERT, "update": UPDATE, "delete": DELETE, "truncate": TRUNCATE, "unreadable": UNREADABLE}
_ANY_TYPE = 0
"""The type's OID of a column of which rows of the feed tell the name alone; the values' types come from the catalog."""


def changes_of_feed(rows: pa.Table) -> TableChanges:
    """Return the changes of a table in rows of the change feed; `relation` rows are Relation messages."""
    are_relations = pc.equal(rows["op"], "relation")
    sent = in_order(_sent(row) for row in rows.filter(are_relations).to_pylist())
    changes = rows.filter(pc.invert(are_relations)).combine_chunks()
    return TableChanges(sent, [*_batches(sent, changes)])


def _sent(row: dict[str, Any]) -> SentRelation:
    columns: Sequence[tuple[str, str]] = row["after"]
    return SentRelation(
        relation_id=row["relation_id"],
        replica_identity=dict(row["before"])["replica_identity"],
        columns=tuple((name, *_type(text)) for name, text in columns),
        key=tuple(row["key"]),
        commit_lsn=row["commit_lsn"],
        ordinal=row["ordinal"],
        xid=row["xid"],
    )


def _type(text: str) -> tuple[int, int]:
    type_id, _, modifier = text.partition(":")
    return int(type_id), int(modifier)


def _batches(sent: Sequence[SentRelation], changes: pa.Table) -> Iterator[ChangeBatch]:
    """Yield the changes between Relation messages, and between changes that list other columns."""
    lsns, ordinals = (changes[name].to_numpy() for name in ("commit_lsn", "ordinal"))
    bounds = [0, *(relation.index_in(lsns, ordinals) for relation in sent)]
    described: list[SentRelation | None] = [None, *sent]
    for (start, stop), last in zip(pairwise([*bounds, len(lsns)]), described, strict=True):
        for batch in changes.slice(start, stop - start).to_batches():
            if batch.num_rows:
                yield _batch(_described(last, batch), batch)


def _described(sent: SentRelation | None, batch: pa.RecordBatch) -> TableDescription:
    """Return a table's description by its last Relation message, or by the names in its rows."""
    if sent is not None:
        named = sent.columns
    else:
        names = [*_keys(batch["after"]), *_keys(batch["before"]), *_flat(batch["unchanged"])]
        named = tuple((name, _ANY_TYPE, -1) for name in dict.fromkeys(names))
    key = set(_flat(batch["key"]))
    columns = tuple(
        v1.Column(flags=int(name in key), name=name, type_id=Oid(type_id), type_modifier=modifier)
        for name, type_id, modifier in named
    )
    is_whole = len(key) == len(columns)
    return TableDescription(
        relation_id=Oid(batch["relation_id"][0].as_py()),
        schema=batch["schema"][0].as_py() or "",
        name=batch["table"][0].as_py() or "",
        replica_identity=ReplicaIdentity.FULL if is_whole else ReplicaIdentity.DEFAULT,
        columns=columns,
        types=(None,) * len(columns),
    )


def _batch(relation: TableDescription, batch: pa.RecordBatch) -> ChangeBatch:
    count, names = batch.num_rows, relation.names
    ops = np.array([_OPS[op] for op in batch["op"].to_pylist()], np.uint8)
    has_old = batch["before"].is_valid().to_numpy(zero_copy_only=False)
    old_kind = WHOLE_ROW if relation.replica_identity is ReplicaIdentity.FULL else KEY
    unsent = np.zeros((count, len(names)), bool)
    for row, columns in enumerate(batch["unchanged"].to_pylist()):
        unsent[row, [names.index(name) for name in columns]] = True
    positions = [
        batch[name].cast(pa.int64()).to_numpy() for name in ("commit_lsn", "ordinal", "commit_timestamp", "xid")
    ]
    old, new = ([pc.map_lookup(batch[side], name, "first") for name in names] for side in ("before", "after"))
    kinds = np.where(has_old, old_kind, 0).astype(np.uint8)
    return ChangeBatch.of(relation, ops, kinds, positions, unsent, old, new)


def _keys(maps: pa.MapArray) -> list[str]:
    ends = maps.offsets.to_numpy()
    names: list[str] = maps.keys[int(ends[0]) : int(ends[-1])].unique().to_pylist()
    return names


def _flat(lists: pa.ListArray) -> list[str]:
    names: list[str] = lists.flatten().unique().to_pylist()
    return names
