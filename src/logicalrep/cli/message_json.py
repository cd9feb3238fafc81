"""Messages as JSON objects: the output of `logicalrep decode`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from logicalrep.transactions.table_names import TableName
from logicalrep.transactions.tags import BINARY, UNCHANGED
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import AnyMessage, Message, Relation
from logicalrep_runtime.json_values import json_value
from logicalrep_runtime.scalars import Lsn, TimestampTz

_NAMES = {layout.tag: layout.name for layout in LOGICALREP.messages}


def message_json(lsn: Lsn, message: AnyMessage, decoder: Decoder) -> dict[str, object]:
    """Return the last message of `decoder` as an object for json.dumps.

    An LSN is text such as `16/B374D848`, a time is ISO 8601 in UTC. A value is text if it is valid in the session's
    encoding, else `{"base64": ...}`; null is NULL, `{"unchanged": true}` an unsent TOASTed value. A row is an object by
    column name, or a list if it has another number of values than the Relation has columns.
    """
    result: dict[str, object] = {"lsn": str(lsn), "message": _NAMES[message.tag]}
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
    return str(TableName(relation.namespace or "pg_catalog", relation.name))


def _row(row: TupleData, relation: Relation | None, encoding: str) -> dict[str, object] | list[object]:
    values: list[object] = [
        {"unchanged": True} if kind == UNCHANGED else json_value(value, encoding, binary=kind == BINARY)
        for kind, value in zip(row.kinds, row.values, strict=True)
    ]
    if relation is None or len(relation.columns) != len(values):
        return values
    return {column.name: value for column, value in zip(relation.columns, values, strict=True)}


def _plain(value: Any, encoding: str) -> object:
    if isinstance(value, Lsn | TimestampTz):
        return str(value)
    if isinstance(value, bytes):
        return json_value(value, encoding)
    if isinstance(value, tuple):
        return [_plain(item, encoding) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name), encoding) for field in fields(value)}
    return value
