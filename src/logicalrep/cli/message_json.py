"""Messages as JSON objects: what `logicalrep decode` prints of each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from logicalrep.transactions.table_names import TableName
from logicalrep.transactions.tags import BINARY, UNCHANGED
from logicalrep.values.json_values import json_value
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import AnyMessage, Message, Relation
from logicalrep_runtime.scalars import Lsn, TimestampTz

_NAMES = {layout.tag: layout.name for layout in LOGICALREP.messages}


def message_json(lsn: Lsn, message: AnyMessage, decoder: Decoder) -> dict[str, Any]:
    """A message just decoded by `decoder`, ready for json.dumps.

    An LSN is text as `16/B374D848`, a time ISO 8601 in UTC. A column value is text where it is text in the session's
    encoding, `{"base64": ...}` where not, null for NULL, and `{"unchanged": true}` for a TOASTed value that was not
    sent; rows are objects by column name, and lists where the Relation has not as many columns as the row.
    """
    result: dict[str, Any] = {"lsn": str(lsn), "message": _NAMES[message.tag]}
    relation_id = getattr(message, "relation_id", None)
    relation = decoder.relations.get(relation_id) if relation_id is not None else None
    for field in fields(message):
        value = getattr(message, field.name)
        if value is None:
            continue
        if isinstance(value, TupleData):
            result[field.name] = _row(value, relation, decoder.encoding)
        else:
            result[field.name] = _plain(value, decoder.encoding)
        if field.name == "relation_id" and relation is not None and not isinstance(message, Relation):
            result["relation"] = relation_name(relation)
    if isinstance(message, Message):
        result["transactional"] = message.transactional
    return result


def relation_name(relation: Relation) -> str:
    """schema.table, as it is written in SQL: no two tables have the same."""
    return str(TableName(relation.namespace or "pg_catalog", relation.name))


def _row(row: TupleData, relation: Relation | None, encoding: str) -> dict[str, Any] | list[Any]:
    values = [
        {"unchanged": True} if kind == UNCHANGED else json_value(value, encoding, binary=kind == BINARY)
        for kind, value in zip(row.kinds, row.values, strict=True)
    ]
    if relation is None or len(relation.columns) != len(values):
        return values
    return {column.name: value for column, value in zip(relation.columns, values, strict=True)}


def _plain(value: Any, encoding: str) -> Any:
    """An attribute that is no row: a number, text, bytes, or a tuple of them or of parts."""
    if isinstance(value, Lsn | TimestampTz):
        return str(value)
    if isinstance(value, bytes):
        return json_value(value, encoding)
    if isinstance(value, tuple):
        return [_plain(item, encoding) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name), encoding) for field in fields(value)}
    return value
