"""Messages as JSON objects: the output of `logicalrep decode`."""

from __future__ import annotations

from logicalrep.transactions.table_names import TableName
from logicalrep.transactions.tags import BINARY, UNCHANGED
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import AnyMessage, Message, Relation
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.json_values import base64_value
from logicalrep_runtime.scalars import Lsn

_DICTIONARIES: Dictionaries[AnyMessage] = Dictionaries(LOGICALREP, AnyMessage)


def message_json(lsn: Lsn, message: AnyMessage, decoder: Decoder) -> dict[str, object]:
    """Return the last message of `decoder` as an object for json.dumps.

    The object is the message's `to_dict`, but for rows. A row is an object by column name, or a list if it has another
    number of values than the Relation has columns. A binary value is `{"base64": ...}`; null is NULL, and
    `{"unchanged": true}` an unsent TOASTed value.
    """
    result: dict[str, object] = {"lsn": str(lsn)}
    relation_id = getattr(message, "relation_id", None)
    relation = decoder.relations.get(relation_id) if relation_id is not None else None
    for name, value in _DICTIONARIES.to_dict(message, encoding=decoder.encoding).items():
        row = getattr(message, name, None)
        result[name] = _row(row, value["values"], relation) if isinstance(row, TupleData) else value
        if name == "relation_id" and relation is not None and not isinstance(message, Relation):
            result["relation"] = relation_name(relation)
    if isinstance(message, Message):
        result["transactional"] = message.transactional
    return result


def relation_name(relation: Relation) -> str:
    return str(TableName(relation.namespace or "pg_catalog", relation.name))


def _row(row: TupleData, texts: list[object], relation: Relation | None) -> dict[str, object] | list[object]:
    values: list[object] = [
        {"unchanged": True} if kind == UNCHANGED else base64_value(value or b"") if kind == BINARY else text
        for kind, value, text in zip(row.kinds, row.values, texts, strict=True)
    ]
    if relation is None or len(relation.columns) != len(values):
        return values
    return {column.name: value for column, value in zip(relation.columns, values, strict=True)}
