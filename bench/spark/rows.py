"""The change feed's rows from handwritten code, a message at a time, to run inside of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from bench.contenders import pypgoutput
from logicalrep import v1
from logicalrep.spark import feed_schema
from logicalrep.spark.schemas import arrow_schema
from logicalrep_runtime.scalars import UNIX_EPOCH

_OPS = {"I": "insert", "U": "update", "D": "delete"}


def identity(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the messages unchanged."""
    yield from batches


def by_parse(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield rows that `parse` makes, for mapInArrow."""
    schema = arrow_schema(feed_schema())
    relations: dict[int, v1.Relation] = {}
    begin, ordinal = None, 0
    for batch in batches:
        rows = []
        for lsn, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            message = v1.parse(data)
            if isinstance(message, v1.Begin):
                begin, ordinal = message, 0
            elif isinstance(message, v1.Relation):
                relations[message.relation_id] = message
            elif isinstance(message, v1.Insert | v1.Update | v1.Delete):
                assert begin is not None
                relation = relations[message.relation_id]
                old = None if isinstance(message, v1.Insert) else message.old
                new = None if isinstance(message, v1.Delete) else message.new
                rows.append(
                    {
                        "op": _OPS[message.tag],
                        "schema": relation.namespace,
                        "table": relation.name,
                        "relation_id": message.relation_id,
                        "before": None if old is None else _pairs(relation, old, message.old_kind == "K"),
                        "after": None if new is None else _pairs(relation, new, False),
                        "key": [column.name for column in relation.columns if column.key],
                        "unchanged": [],
                        "lsn": lsn,
                        "commit_lsn": begin.final_lsn,
                        "commit_timestamp": begin.commit_timestamp + UNIX_EPOCH,
                        "xid": begin.xid,
                        "ordinal": ordinal,
                    }
                )
                ordinal += 1
        yield pa.RecordBatch.from_pylist(rows, schema)


def _pairs(relation: v1.Relation, row: v1.TupleData, is_key: bool) -> list[tuple[str, str | None]]:
    return [
        (column.name, None if value is None else value.decode())
        for column, value in zip(relation.columns, row.values, strict=True)
        if column.key or not is_key
    ]


def by_pypgoutput(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield rows that pypgoutput makes, for mapInPandas."""
    names = feed_schema().names
    decoders = pypgoutput()
    relations: dict[int, Any] = {}
    begin, ordinal = None, 0
    for frame in frames:
        rows = []
        for lsn, data in zip(frame["lsn"], frame["data"], strict=True):
            message: Any = decoders[data[0]](data)
            tag = message.byte1
            if tag == "B":
                begin, ordinal = message, 0
            elif tag == "R":
                relations[message.relation_id] = message
            elif tag in _OPS:
                assert begin is not None
                relation = relations[message.relation_id]
                is_key = getattr(message, "message_type", getattr(message, "optional_tuple_identifier", None)) == "K"
                rows.append(
                    (
                        _OPS[tag],
                        relation.namespace,
                        relation.relation_name,
                        message.relation_id,
                        _texts(relation, getattr(message, "old_tuple", None), is_key),
                        _texts(relation, getattr(message, "new_tuple", None), False),
                        [column.name for column in relation.columns if column.part_of_pkey],
                        [],
                        lsn,
                        begin.lsn,
                        begin.commit_ts,
                        begin.tx_xid,
                        ordinal,
                        None,
                        None,
                    )
                )
                ordinal += 1
        yield pd.DataFrame(rows, columns=names)


def _texts(relation: Any, row: Any, is_key: bool) -> dict[str, str | None] | None:
    if row is None:
        return None
    return {
        column.name: cell.col_data
        for column, cell in zip(relation.columns, row.column_data, strict=True)
        if column.part_of_pkey or not is_key
    }
