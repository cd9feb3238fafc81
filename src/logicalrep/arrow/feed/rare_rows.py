"""The feed's rows that are too rare for arrays: logical messages, truncated tables, and changed descriptions."""

from __future__ import annotations

import base64

import pyarrow as pa

from logicalrep.arrow.feed.texts import Texts
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol import v1


def feed_row(schema: pa.Schema, op: str, lsn: int | None, /, **values: object) -> pa.RecordBatch:
    """Return a record batch of one row; columns that are not given are empty or null. `lsn` is unsigned."""
    signed = lsn if lsn is None or lsn < 1 << 63 else lsn - (1 << 64)
    return pa.RecordBatch.from_pylist([{"op": op, "lsn": signed, "key": [], "unchanged": [], **values}], schema)


def table_columns(relation: TableDescription) -> dict[str, object]:
    return {
        "schema": relation.schema,
        "table": relation.name,
        "relation_id": relation.relation_id,
        "key": list(relation.key),
    }


def message_columns(message: v1.Message) -> dict[str, object]:
    """Return a logical message's column `after`: its prefix, and its content as text, or base64 if it is not text."""
    try:
        content = ("content", message.content.decode())
    except UnicodeDecodeError:
        content = ("content_base64", base64.b64encode(message.content).decode())
    return {"after": [("prefix", message.prefix), content]}


def description_columns(old: TableDescription | None, new: TableDescription, texts: Texts) -> dict[str, object]:
    return {"before": old and _types(old, texts), "after": _types(new, texts), **table_columns(new)}


def _types(relation: TableDescription, texts: Texts) -> list[tuple[str, str]]:
    return [(column.name, column.type.name) for column in texts.columns(relation)]
