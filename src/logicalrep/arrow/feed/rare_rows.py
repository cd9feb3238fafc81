"""The feed's rows that are too rare for arrays: logical messages, truncated tables, and changed descriptions."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.slices import chosen
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol import v1


def feed_row(schema: pa.Schema, op: str, lsn: int | None, /, **values: object) -> pa.RecordBatch:
    """Return a record batch of one row; columns that are not given are empty or null. `lsn` is unsigned."""
    signed = lsn if lsn is None or lsn < 1 << 63 else lsn - (1 << 64)
    return pa.RecordBatch.from_pylist([{"op": op, "lsn": signed, "key": [], "unchanged": [], **values}], schema)


def of_table(relation: TableDescription) -> dict[str, object]:
    """Return the columns that name a table and its key."""
    return {
        "schema": relation.schema,
        "table": relation.name,
        "relation_id": relation.relation_id,
        "key": list(relation.key),
    }


def of_message(message: v1.Message) -> dict[str, object]:
    """Return a logical message's column `after`: its prefix, and its content as text, or base64 if it is not text."""
    try:
        content = ("content", message.content.decode())
    except UnicodeDecodeError:
        content = ("content_base64", base64.b64encode(message.content).decode())
    return {"after": [("prefix", message.prefix), content]}


def of_description(old: TableDescription | None, new: TableDescription, texts: Texts) -> dict[str, object]:
    """Return the columns on a changed description: the table, and the types' names before and after."""
    return {"before": old and _types(old, texts), "after": _types(new, texts), **of_table(new)}


@dataclass(frozen=True, slots=True)
class SentRelation:
    """A Relation message, whose columns are those of the changes of its table that follow."""

    relation_id: int
    """The table's OID."""
    replica_identity: str
    columns: tuple[tuple[str, int, int], ...]
    """The columns in the order of their numbers: name, type's OID and modifier."""
    key: tuple[str, ...]
    """The columns that the message flags as those of the replica identity."""
    commit_lsn: int
    """The commit of the transaction that it was sent in."""
    ordinal: int
    """The number of changes before it in this transaction."""
    xid: int
    """The transaction's id, 32 bits."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the order of their numbers."""
        return tuple(name for name, *_ in self.columns)


def of_sent(relation: TableDescription) -> dict[str, object]:
    """Return the columns of a Relation message's row: `before` has the identity, `after` the columns' types."""
    return {
        **of_table(relation),
        "before": [("replica_identity", relation.replica_identity.value)],
        "after": [(column.name, f"{column.type_id}:{column.type_modifier}") for column in relation.columns],
    }


def sent_relations(rows: pa.Table) -> tuple[list[SentRelation], pa.Table]:
    """Divide a table's rows into its Relation messages, in their order, and the changes.

    A message counts for the changes behind its position, the commit's LSN and the ordinal; it may be a row before or
    after changes that come earlier in its transaction.

    Example:
        >>> relations, changes = sent_relations(rows)
        >>> [(each.ordinal, each.columns) for each in relations]
        [(0, (('id', 23, -1), ('v', 25, -1)))]
    """
    are_relations = pc.equal(rows["op"], "relation")
    if not pc.any(are_relations).as_py():
        return [], rows
    found = [_sent(row) for row in rows.filter(are_relations).to_pylist()]
    found.sort(key=lambda each: (each.commit_lsn, each.ordinal))
    return found, chosen(rows, pc.invert(are_relations))


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


def _types(relation: TableDescription, texts: Texts) -> list[tuple[str, str]]:
    return [(column.name, column.type.name) for column in texts.columns(relation)]
